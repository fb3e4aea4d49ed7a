#include "scan_plain_loop.hpp"

#include <omp.h>

#include <cmath>
#include <vector>

namespace day16 {

template <class T>
void scan_plainly(std::span<const T> in, std::span<T> out, int threads) {
    if (threads == 1) {
        T sum = 0;
        for (std::size_t i = 0; i < in.size(); ++i)
            out[i] = sum += in[i];
        return;
    }
    // Each thread adds up its part, and scans it once the sums of all parts before it are known.
    std::vector<T> before(static_cast<std::size_t>(threads) + 1);
#pragma omp parallel num_threads(threads)
    {
        const auto part = static_cast<std::size_t>(omp_get_thread_num());
        const auto parts = static_cast<std::size_t>(omp_get_num_threads());
        const std::size_t begin = in.size() * part / parts;
        const std::size_t end = in.size() * (part + 1) / parts;
        T sum = 0;
        for (std::size_t i = begin; i < end; ++i)
            sum += in[i];
        before[part + 1] = sum;
#pragma omp barrier
#pragma omp single
        for (std::size_t p = 0; p < parts; ++p)
            before[p + 1] += before[p];
        sum = before[part];
        for (std::size_t i = begin; i < end; ++i)
            out[i] = sum += in[i];
    }
}

template void scan_plainly(std::span<const float>, std::span<float>, int);
template void scan_plainly(std::span<const std::int32_t>, std::span<std::int32_t>, int);
template void scan_plainly(std::span<const std::int64_t>, std::span<std::int64_t>, int);

void selective_scan_plainly(const SelectiveInputs& in, std::span<float> y, int threads) {
    const auto [batch, channels, length, states] = in.shape;
#pragma omp parallel for num_threads(threads)
    for (std::size_t row = 0; row < batch * channels; ++row) {
        const std::size_t channel = row % channels;
        const std::size_t first = row * length;
        for (std::size_t t = 0; t < length; ++t)
            y[first + t] = in.d[channel] * in.x[first + t];
        for (std::size_t n = 0; n < states; ++n) {
            const float a = in.a[channel * states + n];
            const std::size_t inputs = (row / channels * states + n) * length;
            float h = 0;
            for (std::size_t t = 0; t < length; ++t) {
                const float delta = in.delta[first + t];
                h = std::exp(delta * a) * h + delta * in.x[first + t] * in.b[inputs + t];
                y[first + t] += in.c[inputs + t] * h;
            }
        }
    }
}

}  // namespace day16
