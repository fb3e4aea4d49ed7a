// Day 26: the online softmax of the tiled versions, in which a thread has scores of several rows.
#pragma once

#include "attention_tile.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day26 {

// ROWS rows, each divided among LANES adjacent lanes. `scale` contains log2(e), so a weight takes
// one multiply-add and one exp2: p = exp2(scale * score - max). The rounding of the maximum is the
// same in all p of a row, so it cancels in the quotient (beyond/README.md, "How exact?").
//
// The running maximum only prevents overflow, so we rescale lazily: only when a score is more than
// kSlack above it, which would make p larger than 2^kSlack. After the first tiles that is rare.
template <int ROWS, int LANES>
struct OnlineSoftmax {
    static constexpr float kSlack = 8;

    float max[ROWS];
    float sum[ROWS];  // of this lane's p

    __device__ OnlineSoftmax() {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            max[row] = -kInfinity;
            sum[row] = 0;
        }
    }

    // Updates the maxima with COLS more scores of each row, score(row, col). Returns true, in the
    // whole warp, if the warp rescales: then all sums so far must be multiplied by factor[row].
    // fmaxf ignores a NaN; weight() puts it into the sum.
    template <int COLS, class Score>
    __device__ bool raise_maximum(float scale, Score score, float (&factor)[ROWS]) {
        float top[ROWS];
        bool grown = false;
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            top[row] = score(row, 0);
#pragma unroll
            for (int col = 1; col < COLS; ++col)
                top[row] = fmaxf(top[row], score(row, col));
            grown |= top[row] * scale > max[row] + kSlack;
        }
        if (!__any_sync(course::kWholeWarp, grown)) return false;
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
#pragma unroll
            for (int distance = LANES / 2; distance > 0; distance /= 2)
                top[row] = fmaxf(top[row], __shfl_xor_sync(course::kWholeWarp, top[row], distance));
            const float raised = fmaxf(max[row], top[row] * scale);
            factor[row] = raised == max[row] ? 1.0f : course::ptx::exp2_approx(max[row] - raised);
            if (raised == kInfinity)
                factor[row] = kNan;  // a score overflowed: without this, all p would be 0
            max[row] = raised;
            sum[row] *= factor[row];
        }
        return true;
    }

    // What weight() subtracts. If all scores are -Inf, so is the maximum, and -Inf - -Inf would be
    // NaN.
    __device__ float shift(int row) const {
        return max[row] == -kInfinity ? 0.0f : max[row];
    }

    // p of a score; adds it to the sum of the row.
    __device__ float weight(int row, float score, float scale, float shift_of_row) {
        const float p = course::ptx::exp2_approx(fmaf(score, scale, -shift_of_row));
        sum[row] += p;
        return p;
    }

    // 1 / the sum over all lanes of the row; 0 for a row that sees no key.
    __device__ float inverse_of_sum(int row) const {
        float total = sum[row];
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            total += __shfl_xor_sync(course::kWholeWarp, total, distance);
        return total == 0 ? 0.0f : 1 / total;
    }
};

}  // namespace day26
