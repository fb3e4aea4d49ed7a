// Figure 20.14: when a tile raises the maximum of a row, what has been summed is rescaled. The code
// rescales the sum of the tiles before; the text says that it is that of the new tile.
//
//   ./course run docs/errata/online_softmax.cu
#include <algorithm>
#include <cmath>

#include "errata.hpp"

constexpr int kRows = 8, kColumns = 12, kTile = 4;

// One thread per row: the denominator of its softmax.
template <bool kReported>
__global__ void find_denominators(const float* scores, float* denominators) {
    const float* const row = scores + threadIdx.x * kColumns;
    float maximum = -INFINITY, denominator = 0.0f;
    for (int tile = 0; tile < kColumns; tile += kTile) {
        float maximum_of_tile = -INFINITY;
        for (int i = tile; i < tile + kTile; ++i)
            maximum_of_tile = fmaxf(maximum_of_tile, row[i]);
        const float raised = fmaxf(maximum, maximum_of_tile);
        denominator *= expf((kReported ? maximum_of_tile : maximum) - raised);
        for (int i = tile; i < tile + kTile; ++i)
            denominator += expf(row[i] - raised);
        maximum = raised;
    }
    denominators[threadIdx.x] = denominator;
}

int main() {
    std::vector<float> scores(kRows * kColumns);
    for (int i = 0; i < kRows * kColumns; ++i)
        scores[i] = 0.25f * static_cast<float>(i * 29 % 37);
    const errata::OnDevice<float> in(scores), reported(kRows, 0.0f), corrected(kRows, 0.0f);
    find_denominators<true><<<1, kRows>>>(in.data(), reported.data());
    find_denominators<false><<<1, kRows>>>(in.data(), corrected.data());
    // Rows whose denominator is off by more than rounding.
    const auto wrong = [&](const std::vector<float>& denominators) {
        int count = 0;
        for (int r = 0; r < kRows; ++r) {
            const float* const row = scores.data() + r * kColumns;
            const double maximum = *std::max_element(row, row + kColumns);
            double exact = 0.0;
            for (int i = 0; i < kColumns; ++i)
                exact += std::exp(row[i] - maximum);
            count += std::abs(denominators[r] - exact) > 1e-5 * exact;
        }
        return count;
    };
    return errata::show("20.14", "of 8 rows wrong", wrong(reported.to_host()), wrong(corrected.to_host()))
               ? 0
               : 1;
}
