#include "conv_layers_plain_loop.hpp"

#include <algorithm>

namespace day28 {

// For each weight, rows of x times that weight are added to rows of y: the innermost loop goes
// along rows, so it reads memory in order. No tensor has more than 2^30 elements: int counts them.
void forward_plainly(const Shape& s, std::span<const float> x, std::span<const float> w, std::span<float> y,
                     int threads) {
#pragma omp parallel for collapse(2) num_threads(threads)
    for (int n = 0; n < s.n; ++n) {
        for (int k = 0; k < s.k; ++k) {
            float* const plane = y.data() + (n * s.k + k) * s.plane();
            std::fill(plane, plane + s.plane(), 0.0f);
            for (int c = 0; c < s.c; ++c) {
                const float* const channel = x.data() + (n * s.c + c) * s.h * s.w;
                const float* weight = w.data() + (k * s.c + c) * s.r * s.s;
                for (int down = -s.padding; down < s.r - s.padding; ++down) {
                    for (int right = -s.padding; right < s.s - s.padding; ++right, ++weight) {
                        const float factor = *weight;
                        // The columns of y whose pixel of x, `right` of the centre, is not padding.
                        const int first = right < 0 ? (-right + s.stride - 1) / s.stride : 0;
                        const int last = std::min(s.q(), (s.w - right + s.stride - 1) / s.stride);
                        for (int p = 0; p < s.p(); ++p) {
                            const int row = p * s.stride + down;
                            if (row < 0 || row >= s.h) continue;
                            for (int q = first; q < last; ++q)
                                plane[p * s.q() + q] += factor * channel[row * s.w + q * s.stride + right];
                        }
                    }
                }
            }
        }
    }
}

}  // namespace day28
