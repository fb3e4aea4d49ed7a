#include <algorithm>
#include <cmath>

#include "common/check/require.hpp"
#include "copies_and_streams.hpp"

// Without an FMA instruction std::fma is a function call, hundreds of times slower. A compiler that
// may not assume the instruction compiles the function twice, and the program picks one when it
// starts.
#if defined(__x86_64__) && defined(__linux__) && !defined(__FMA__)
#define DAY09_USE_FMA __attribute__((target_clones("fma", "default")))
#else
#define DAY09_USE_FMA
#endif

namespace day09 {
namespace {

constexpr std::ptrdiff_t kBlock = 4096;  // elements for a thread at a time
constexpr std::ptrdiff_t kGroup = 64;    // of those, as many as stay in registers for all steps

DAY09_USE_FMA void iterate_block(const float* in, float* out, std::ptrdiff_t count, int steps) {
    std::ptrdiff_t begin = 0;
    for (; begin + kGroup <= count; begin += kGroup) {
        float x[kGroup];
        for (std::ptrdiff_t i = 0; i < kGroup; ++i)
            x[i] = in[begin + i];
        for (int step = 0; step < steps; ++step)
            for (std::ptrdiff_t i = 0; i < kGroup; ++i)
                x[i] = std::fma(kFactor, x[i], kAddend);
        for (std::ptrdiff_t i = 0; i < kGroup; ++i)
            out[begin + i] = x[i];
    }
    for (; begin < count; ++begin) {
        float x = in[begin];
        for (int step = 0; step < steps; ++step)
            x = std::fma(kFactor, x, kAddend);
        out[begin] = x;
    }
}

}  // namespace

// std::fma rounds once, as the device's does: both get the same bits.
void iterate_on_cpu(std::span<const float> in, std::span<float> out, int steps) {
    course::require(in.size() == out.size(), "iterate_on_cpu: in and out have ", in.size(), " and ",
                    out.size(), " elements; expected the same number");
    const auto n = static_cast<std::ptrdiff_t>(in.size());
#pragma omp parallel for schedule(static)
    for (std::ptrdiff_t begin = 0; begin < n; begin += kBlock)
        iterate_block(in.data() + begin, out.data() + begin, std::min(kBlock, n - begin), steps);
}

}  // namespace day09
