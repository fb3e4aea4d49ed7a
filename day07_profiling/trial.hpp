// A problem of a mystery with its data, for the tests and the program.
#pragma once

#include <cstdint>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "profiling.hpp"

namespace day07 {

class Trial {
  public:
    Trial(const Version& version, std::size_t n,
          course::DataPattern pattern = course::DataPattern::kSignedUniform)
        : mystery_(version.launcher),
          n_(n),
          layout_(mystery_.layout(n)),
          host_(course::make_data<float>(layout_.in, pattern, 7)),
          in_(layout_.in),
          work_(layout_.work),
          out_(layout_.out),
          expected_(layout_.out),
          magnitude_(layout_.out) {
        in_.copy_from(host_);
        mystery_.on_cpu(n, host_, expected_, magnitude_);
    }

    void launch(const Version& version, cudaStream_t stream = nullptr) {
        run(version, in_.span(), n_, work_.span(), out_.span(), stream);
    }

    // Makes sure that an old result cannot pass for a new one.
    void spoil() {
        out_.spoil();
        work_.spoil();
    }

    course::VerifyResult verify() const {
        course::VerifyResult result =
            course::verify(out_.to_host(), expected_, {.terms = layout_.terms}, magnitude_);
        result.damage = out_.damage() + work_.damage() + in_.damage();
        return result;
    }

  private:
    Mystery mystery_;
    std::size_t n_;
    Layout layout_;
    std::vector<float> host_;
    course::GuardedBuffer<float> in_, work_, out_;
    std::vector<double> expected_, magnitude_;
};

}  // namespace day07
