#include <algorithm>
#include <cmath>

#include "common/check/require.hpp"
#include "copies_and_streams.hpp"

namespace day02 {

// std::fma rounds once, as the device's does: both get the same bits.
void iterate_on_cpu(std::span<const float> in, std::span<float> out, int steps) {
    course::require(in.size() == out.size(), "iterate_on_cpu: in and out have ", in.size(), " and ",
                    out.size(), " elements; expected the same number");
    constexpr std::ptrdiff_t kBlock = 1024;  // stays in the L1 cache for all steps
    const auto n = static_cast<std::ptrdiff_t>(in.size());
#pragma omp parallel for
    for (std::ptrdiff_t begin = 0; begin < n; begin += kBlock) {
        const std::ptrdiff_t count = std::min(kBlock, n - begin);
        const float* from = in.data() + begin;
        float* to = out.data() + begin;
        std::copy(from, from + count, to);
        for (int step = 0; step < steps; ++step) {
#pragma omp simd
            for (std::ptrdiff_t i = 0; i < count; ++i)
                to[i] = std::fma(kFactor, to[i], kAddend);
        }
    }
}

}  // namespace day02
