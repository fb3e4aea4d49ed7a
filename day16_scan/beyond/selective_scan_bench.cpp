#include "selective_scan_bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/check/unwritten.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "scan_plain_loop.hpp"
#include "selective_scan.hpp"

namespace day16 {
namespace {

using course::DeviceBuffer;

std::vector<float> normal_numbers(std::size_t n, std::uint64_t seed) {
    std::vector<float> numbers(n);
    course::for_each_index(n, [&](std::size_t i) { numbers[i] = course::Random(seed, 4 * i).normal(); });
    return numbers;
}

// a = -1, -2, ..., as S4D-Real and Mamba start; delta from 0.001 to 0.1.
SelectiveInputs make_inputs(const SelectiveShape& s) {
    const std::size_t elements = s.batch * s.channels * s.length;
    SelectiveInputs in{.shape = s,
                       .x = normal_numbers(elements, 1),
                       .delta = std::vector<float>(elements),
                       .a = std::vector<float>(s.channels * s.states),
                       .b = normal_numbers(s.batch * s.states * s.length, 2),
                       .c = normal_numbers(s.batch * s.states * s.length, 3),
                       .d = normal_numbers(s.channels, 4)};
    course::for_each_index(elements, [&](std::size_t i) {
        in.delta[i] = 0.001f * std::exp(course::Random(5, 2 * i).uniform(0, 4.6f));
    });
    for (std::size_t i = 0; i < in.a.size(); ++i)
        in.a[i] = -static_cast<float>(i % s.states + 1);
    return in;
}

struct Data {
    explicit Data(const SelectiveShape& shape)
        : inputs(make_inputs(shape)),
          x(std::span<const float>(inputs.x)),
          delta(std::span<const float>(inputs.delta)),
          a(std::span<const float>(inputs.a)),
          b(std::span<const float>(inputs.b)),
          c(std::span<const float>(inputs.c)),
          d(std::span<const float>(inputs.d)),
          y(inputs.x.size()),
          expected(selective_scan_on_cpu(inputs)),
          from(std::span<const float>(std::vector<float>(inputs.x.size() * 3 / 2))),
          to(inputs.x.size() * 3 / 2) {}

    SelectiveScan scan() {
        return {.shape = inputs.shape,
                .x = std::as_const(x).span(),
                .delta = std::as_const(delta).span(),
                .a = std::as_const(a).span(),
                .b = std::as_const(b).span(),
                .c = std::as_const(c).span(),
                .d = std::as_const(d).span(),
                .y = y.span()};
    }

    template <class Y>
    course::VerifyResult verify(const Y& got) const {
        return course::verify(got, expected.values, {.factor = kSelectiveFactor}, expected.magnitudes,
                              inputs.shape.length);
    }

    SelectiveInputs inputs;
    DeviceBuffer<float> x, delta, a, b, c, d;
    course::GuardedBuffer<float> y;
    SelectiveOnCpu expected;
    DeviceBuffer<float> from, to;  // a copy moves as many bytes as x, delta and y have together
};

}  // namespace

course::Case make_selective_case(const course::Dims& dims) {
    if (dims.size() != 4) return {};
    const SelectiveShape shape{dims[0], dims[1], dims[2], dims[3]};
    course::UsualCase<Data> usual(fmt::format("selective_scan {}", fmt::join(dims, "x")), "float",
                                  std::make_shared<Data>(shape));
    const Data& data = *usual.data;
    usual.output(&Data::y, [](Data& d, const auto& y) { return d.verify(y); });
    usual.versions(selective_versions(), shape, [](const auto& version, Data& d, cudaStream_t stream) {
        version.launcher(d.scan(), stream);
    });
    // About 5 ns for each step of a state, most of it for the exponential.
    usual.plain_loop(
        selective_versions().front().work(shape),
        static_cast<double>(data.inputs.x.size() * shape.states) * 5e-9,
        [n = data.inputs.x.size()] { return course::unwritten<float>(n); },
        [](const Data& d, std::span<float> y, int threads) { selective_scan_plainly(d.inputs, y, threads); },
        [](const Data& d, const auto& y) { return d.verify(y); });
    usual.limit_copy(&Data::from, &Data::to);
    return usual.result;
}

}  // namespace day16
