// Fused attention, first version: a warp for each row of Q, and the online softmax as it is on paper.
//
// A lane computes the scores of every 32nd key, and keeps every 32nd column of the result. Between the two, 32 weights go from lane to
// lane by shuffle. Scores exist 32 at a time, in registers.
#include "attention_tile.cuh"
#include "versions.hpp"

namespace day25::fused {
namespace {

constexpr int kWarps = 4;

// Idea: what has been summed is relative to the largest score so far; a larger one rescales it. So no score is needed twice.
// Cost removed: the matrix of scores, written once and read twice, and its memory.
// Still limits it: every warp reads all of K and V for one row: a load for each multiply-add.
template <int D>
__global__ void attention_row_per_warp(Attention<float> a) {
    constexpr int COLS = D / 32;  // of a lane
    __shared__ float queries[kWarps][D];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Extents extents = a.q.extents();
    const std::size_t index =
        static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / 32;  // of all rows
    if (index >= extents.batch * extents.heads * extents.length) return;
    const std::size_t row = index % extents.length;
    const std::size_t head = index / extents.length % extents.heads;
    const std::size_t batch = index / extents.length / extents.heads;
    const std::size_t head_kv = head / (extents.heads / a.k.extents().heads);
    const float* const k = a.k.head(batch, head_kv);
    const float* const v = a.v.head(batch, head_kv);
    const auto keys = static_cast<int>(visible_keys(row, extents.length, a.k.extents().length, a.causal));
    const int dim = a.q.dim();

    float* const query = queries[threadIdx.x / 32];
    for (int c = lane; c < dim; c += 32)
        query[c] = a.q.head(batch, head)[row * a.q.strides().row + c];
    __syncwarp();

    float max = -kInfinity;
    float sum = 0;
    float out[COLS] = {};
    for (int first = 0; first < keys; first += 32) {
        float score = -kInfinity;
        if (first + lane < keys) {
            const float* const key = k + static_cast<std::size_t>(first + lane) * a.k.strides().row;
            score = 0;
            for (int c = 0; c < dim; ++c)
                score += query[c] * key[c];
            score *= a.scale * kLog2E;
        }
        const float new_max = fmaxf(max, course::warp_reduce(score, fmaxf));
        const float shift = new_max == -kInfinity ? 0 : new_max;  // -Inf - -Inf would be NaN
        const float factor = exp2f(max - shift);
        const float p = exp2f(score - shift);
        max = new_max;
        sum = sum * factor + p;
#pragma unroll
        for (int i = 0; i < COLS; ++i)
            out[i] *= factor;
        for (int j = 0; j < min(keys - first, 32); ++j) {
            const float p_of_key = __shfl_sync(course::kWholeWarp, p, j);
            const float* const value = v + static_cast<std::size_t>(first + j) * a.v.strides().row;
#pragma unroll
            for (int i = 0; i < COLS; ++i) {
                if (lane + i * 32 < dim) out[i] += p_of_key * value[lane + i * 32];
            }
        }
    }
    sum = course::warp_reduce(sum, [](float x, float y) { return x + y; });
    const float inverse = sum == 0 ? 0 : 1 / sum;
#pragma unroll
    for (int i = 0; i < COLS; ++i) {
        if (lane + i * 32 < dim)
            a.out.head(batch, head)[row * a.out.strides().row + lane + i * 32] = out[i] * inverse;
    }
}

void launch(const Attention<float>& attention, cudaStream_t stream) {
    if (!check_arguments(attention)) return;
    const Extents q = attention.q.extents();
    const unsigned blocks = course::blocks_for(q.batch * q.heads * q.length * 32, kWarps * 32);
    with_dim<32, 64, 96, 128>(q.dim, [&](auto dim) {
        attention_row_per_warp<dim()><<<blocks, kWarps * 32, 0, stream>>>(attention);
        CUDA_CHECK_LAUNCH();
    });
}

}  // namespace

FusedAttention<float> row_per_warp() {
    return {.name = "row_per_warp",
            .idea = "a warp for each row, with a running maximum and a running sum",
            .launcher = launch,
            .work = work_in_fp32};
}

}  // namespace day25::fused
