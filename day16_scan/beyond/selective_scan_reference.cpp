#include <cmath>

#include "selective_scan.hpp"

namespace day16 {

// Why the magnitudes bound the error of every version. Let u = 2^-24, p[t] = delta[t] a and
// e[t] = exp(p[t]). The result is a sum of terms: for each state, and each time s <= t,
//
//     c[t] * e[t] * e[t - 1] * ... * e[s + 1] * (delta[s] x[s] b[s])
//
// and d x[t]. A rounding changes each term that passes through it by a factor of at most 1 + u. So
// the number of roundings on the path of a term counts, in whatever order the terms are combined:
//
//     2         in delta x b.
//     |p| + 4   for each later step r. The rounding of p changes e by |p| u, and expf() is exact to
//               one unit in the last place, at most 2 u. When the pair (factor, offset) of s is the
//               left operand, the right pair's m factors bring m multiplications and one addition:
//               at most 2 for each step, and each step is combined with s once.
//     kRight    additions in which the term's pair is the right operand: of a thread's steps (1), in
//               a warp (5), of warps (1), of a warp and those before it (1), of tiles (1).
//     1 + N     the product with c, and the additions of N states to d x. Of d x: as many.
//
// With M[t] = e[t] M[t - 1] + |delta x b| (the terms without signs), the part that grows with time
// is G[t] = e[t] (G[t - 1] + (|p[t]| + 4) M[t - 1]).
SelectiveOnCpu selective_scan_on_cpu(const SelectiveInputs& in) {
    constexpr double kRight = 9;
    const auto [batch, channels, length, states] = in.shape;
    SelectiveOnCpu result{std::vector<double>(in.x.size()), std::vector<double>(in.x.size())};
    const auto of_sum = 1 + static_cast<double>(states);
#pragma omp parallel for
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(batch * channels);
         ++signed_row) {
        const auto row = static_cast<std::size_t>(signed_row);
        const std::size_t channel = row % channels;
        for (std::size_t t = 0; t < length; ++t) {
            const double direct =
                static_cast<double>(in.d[channel]) * static_cast<double>(in.x[row * length + t]);
            result.values[row * length + t] = direct;
            result.magnitudes[row * length + t] = of_sum * std::abs(direct);
        }
        for (std::size_t n = 0; n < states; ++n) {
            const double a = static_cast<double>(in.a[channel * states + n]);
            const std::size_t inputs = (row / channels * states + n) * length;
            double h = 0;
            double without_signs = 0;
            double growing = 0;
            for (std::size_t t = 0; t < length; ++t) {
                const double delta = static_cast<double>(in.delta[row * length + t]);
                const double added = delta * static_cast<double>(in.b[inputs + t]) *
                                     static_cast<double>(in.x[row * length + t]);
                const double factor = std::exp(delta * a);
                h = factor * h + added;
                growing = factor * (growing + (std::abs(delta * a) + 4) * without_signs);
                without_signs = factor * without_signs + std::abs(added);
                const double c = static_cast<double>(in.c[inputs + t]);
                result.values[row * length + t] += c * h;
                result.magnitudes[row * length + t] +=
                    std::abs(c) * ((2 + kRight + of_sum) * without_signs + growing);
            }
        }
    }
    return result;
}

}  // namespace day16
