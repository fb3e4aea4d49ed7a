// A hunt on some data: what its tests and its program run and verify.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "hunts.hpp"

namespace hunts {

// What cudaMallocAsync has given on the current device, and cudaFreeAsync has not taken back yet.
inline std::uint64_t bytes_in_use() {
    int device = 0;
    cudaMemPool_t pool = nullptr;
    std::uint64_t bytes = 0;
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
}

class Trial {
  public:
    // `padding` elements follow each row of a matrix of several rows, and the first element of
    // everything is `misaligned_by` elements after an aligned address.
    Trial(const Hunt& hunt, const Shape& problem, course::DataPattern pattern, std::size_t padding = 0,
          std::size_t misaligned_by = 0)
        : hunt_(hunt),
          layout_(hunt.launcher.layout(problem)),
          in_(course::make_data<float>(layout_.in.size(), pattern, kSeed)),
          vector_(course::make_data<float>(layout_.vector, course::DataPattern::kSignedUniform, kSeed + 1)),
          in_device_(in_, layout_.in.rows, layout_.in.cols, padding, misaligned_by),
          vector_device_(layout_.vector, misaligned_by),
          out_device_(layout_.out.rows, layout_.out.cols, padding == 0 ? 0 : padding + 1, misaligned_by),
          expected_(layout_.out.size()),
          magnitude_(layout_.out.size()) {
        vector_device_.copy_from(vector_);
        hunt.launcher.on_cpu(layout_, in_, vector_, expected_, magnitude_);
        for (double& size : magnitude_)  // verify() wants finite ones; where it is not, neither is the result
            size = std::isfinite(size) ? size : 0;
    }

    void launch(cudaStream_t stream = nullptr) {
        hunt_.launcher.launch({in_device_.view(), vector_device_.span(), out_device_.view()}, stream);
    }

    // Makes sure that an old result cannot pass for a new one.
    void spoil() { out_device_.spoil(); }

    course::VerifyResult verify() const {
        course::VerifyResult result =
            course::verify(out_device_.packed(), expected_, {.terms = layout_.terms}, magnitude_,
                           layout_.out.rows > 1 ? layout_.out.cols : 0);
        result.damage = out_device_.damage();
        if (!in_device_.damage().empty()) result.damage += " in the input: " + in_device_.damage();
        return result;
    }

  private:
    static constexpr std::uint64_t kSeed = 7;

    const Hunt& hunt_;
    Layout layout_;
    std::vector<float> in_;
    std::vector<float> vector_;
    course::GuardedMatrix<float> in_device_;
    course::GuardedBuffer<float> vector_device_;
    course::GuardedMatrix<float> out_device_;
    std::vector<double> expected_;
    std::vector<double> magnitude_;
};

}  // namespace hunts
