// Day 25, part 1: Bahdanau's scores, v . tanh(W [h; s_j]). The head of scores.cuh lists all
// versions.
#pragma once

#include "matmul_tile.cuh"
#include "scores.cuh"

namespace day25 {

// Idea: store [h; s_j] for every state, so that one product multiplies all of them by W.
// Cost removed: none. This is the formula as it stands.
// Still limits it: memory, and the product multiplies W_h by the same h for every state.
__global__ void concatenate(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                            DeviceMatrix<float> out) {
    const std::size_t i = element();
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    out(row, col) = col < hidden.size() ? hidden[col] : states(row, col - hidden.size());
}

// Idea: tanh, the product with v and the sum in one pass, a warp for each state. bahdanau_split
// passes W_h h in `add`, so that W_h meets one vector instead of a matrix; otherwise `add` is
// empty.
// Cost removed: the results of tanh in memory; with `add`, half of the matrix product.
// Still limits it: memory. It reads the result that the product has just written.
__global__ void __launch_bounds__(kScoreThreads)
    weigh_tanh(DeviceMatrix<const float> in, DeviceSpan<const float> add, DeviceSpan<const float> v,
               DeviceSpan<float> scores) {
    const std::size_t row = element() / course::kWarpSize;
    if (row >= in.rows()) return;
    float sum = 0;
    for (std::size_t i = threadIdx.x % course::kWarpSize; i < in.cols(); i += course::kWarpSize)
        sum += v[i] * tanhf(in(row, i) + (add.empty() ? 0.0f : add[i]));
    sum = course::warp_reduce(sum, Sum{});
    if (threadIdx.x % course::kWarpSize == 0) scores[row] = sum;
}

using ScoreTile = Tile<64, 64, 16, 4, 4>;

// Idea: use a result while it is in a register. A block multiplies 64 states by 64 units; tanh, v
// and the sum over its units follow at once.
// Cost removed: S W_s^T in memory. 64 x 64 results become 64 numbers, which add_rows adds up.
// Still limits it: the matrix product.
__global__ void __launch_bounds__(ScoreTile::THREADS)
    score_tiles(DeviceMatrix<const float> states, DeviceMatrix<const float> weight,
                DeviceSpan<const float> add, DeviceSpan<const float> v, DeviceMatrix<float> parts) {
    __shared__ typename ScoreTile::Shared shared;
    const std::size_t part = blockIdx.x % parts.cols();
    const std::size_t row0 = blockIdx.x / parts.cols() * ScoreTile::BM;
    const std::size_t unit0 = part * ScoreTile::BN;
    ScoreTile tile;
    tile.multiply<true>(states, weight, row0, unit0, shared);

    float score[ScoreTile::TM] = {};  // of this thread's TM states, over its TN units
    for (int j = 0; j < ScoreTile::TN; ++j) {
        const std::size_t unit = unit0 + ScoreTile::col() + j * ScoreTile::COLS;
        if (unit >= weight.rows()) continue;
        for (int i = 0; i < ScoreTile::TM; ++i)
            score[i] += v[unit] * tanhf(tile.sum[i][j] + add[unit]);
    }
    // The threads that share a row are adjacent lanes.
    static_assert(course::kWarpSize % ScoreTile::COLS == 0);
    for (int i = 0; i < ScoreTile::TM; ++i) {
        for (int distance = ScoreTile::COLS / 2; distance > 0; distance /= 2)
            score[i] += __shfl_xor_sync(course::kWholeWarp, score[i], distance);
        const std::size_t row = row0 + ScoreTile::row() + i * ScoreTile::ROWS;
        if (ScoreTile::col() == 0 && row < parts.rows()) parts(row, part) = score[i];
    }
}

}  // namespace day25
