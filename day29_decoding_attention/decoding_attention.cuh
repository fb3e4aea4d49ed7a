// Day 29: attention for decoding. One query for each sequence and head, and a long cache of keys
// and values. PMPP chapter 20 (5th edition).
//
//   version        what is new                                           what limits it
//   row_per_block  online softmax in each warp, merged at the end        32 heads fill 32 of 132 SMs
//   split_keys     several blocks for a row; a second kernel combines    latency of loads; GQA: K, V again
//
// Each kernel is followed by its launch. beyond/ loads K and V once for all heads that share them,
// copies the next tiles while it multiplies, and gives all SMs equal shares.
//
// A token of K and V is used once for each query. So decoding is memory-bound, and the least time
// is that of reading the cache: 1 x 32 heads x 8192 tokens with a head dimension of 128 in BF16 are
// 134 MB.
//
//   ./course run day29                             every version, verified and timed
//   ./course run day29 --program                   program.cu: one step of decoding
//   ./course run day29 --size 1x32x32x8192x128     batch x heads x heads of K x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day29 {

// Arguments of all kernels. A row is one query of one head of one sequence, numbered as in q.
template <class T>
struct Task {
    const T* q;
    const T* k;
    const T* v;
    const int* lengths;
    T* out;
    int batch;
    int heads_kv;
    int rows;  // of a head of K
    int queries;
    int capacity;
    float scale;  // contains log2(e): exp(x) = exp2(x log2(e))

    __device__ int length(int sequence) const { return min(max(lengths[sequence], 0), capacity); }
    // Of the cache of head `item` (all heads of K of all sequences are numbered).
    __device__ std::size_t cache(int item, int token, int dim) const {
        return (static_cast<std::size_t>(item) * static_cast<std::size_t>(capacity) +
                static_cast<std::size_t>(token)) *
               static_cast<std::size_t>(dim);
    }
};

// --- A block for each row ------------------------------------------------------------------------

inline constexpr float kInfinity = __builtin_huge_valf();

// exp2(max - shared), where a part without any score, or only of -Inf, has the weight 0.
__device__ inline float weight_of(float max, float shared) {
    return max == -kInfinity ? 0 : course::ptx::exp2_approx(max - shared);
}

// Parts of a row are independent. Each has the maximum of its scores, the sum of its exponentials,
// and the sum of its weighted rows of V (here one column of it), both relative to the maximum.
// add() makes one part of two: m = max(m1, m2), l = l1 exp(m1 - m) + l2 exp(m2 - m), o likewise.
struct Part {
    float max = -kInfinity;
    float sum = 0;
    float out = 0;

    __device__ void add(const Part& other) {
        const float both = fmaxf(max, other.max);
        const float mine = weight_of(max, both);
        const float others = weight_of(other.max, both);
        max = both;
        sum = sum * mine + other.sum * others;
        out = out * mine + other.out * others;
    }
    __device__ float result() const { return sum == 0 ? 0 : out / sum; }
};

constexpr int kWarps = 8;    // of a block
constexpr int kAtATime = 4;  // keys whose loads a warp issues together

// The keys [first, last) of a row: warp w takes the keys w, w + kWarps, ... Each warp has an online
// softmax (day 26). A lane has D / 32 adjacent columns. Then the warps' results become one:
// thread c < D returns column c.
template <class T, int D>
__device__ Part attend_row(const Task<T>& task, std::size_t row, int first, int last) {
    constexpr int COLS = D / 32;  // columns of a lane
    using Columns = course::Pack<T, COLS>;
    __shared__ Part parts[kWarps][D];
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const auto item = static_cast<int>(row / static_cast<std::size_t>(task.rows));
    const Columns query = Columns::load(task.q + row * D + lane * COLS);

    float max = -kInfinity;
    float sum = 0;
    float out[COLS] = {};
    for (int key = first + warp; key < last; key += kWarps * kAtATime) {
        Columns k[kAtATime];
        Columns v[kAtATime];
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) {
            // After the end the last key is loaded once more, and not used.
            const std::size_t at = task.cache(item, min(key + i * kWarps, last - 1), D);
            k[i] = Columns::load(task.k + at + lane * COLS);
            v[i] = Columns::load(task.v + at + lane * COLS);
        }
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) {
            if (key + i * kWarps >= last) break;
            float score = 0;
#pragma unroll
            for (int c = 0; c < COLS; ++c)
                score += static_cast<float>(query.value[c]) * static_cast<float>(k[i].value[c]);
            score = course::warp_reduce(score, [](float x, float y) { return x + y; }) * task.scale;
            const float new_max = fmaxf(max, score);
            const float factor = weight_of(max, new_max);
            const float p = weight_of(score, new_max);
            max = new_max;
            sum = sum * factor + p;
#pragma unroll
            for (int c = 0; c < COLS; ++c)
                out[c] = out[c] * factor + p * static_cast<float>(v[i].value[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < COLS; ++c)
        parts[warp][lane * COLS + c] = {max, sum, out[c]};
    __syncthreads();
    Part whole;
    if (threadIdx.x < D) {
        for (int w = 0; w < kWarps; ++w)
            whole.add(parts[w][threadIdx.x]);
    }
    return whole;
}

// How many keys a row sees: of the newest tokens, only those up to its own.
template <class T>
__device__ int visible_keys(const Task<T>& task, std::size_t row) {
    const std::size_t per_sequence =
        static_cast<std::size_t>(task.heads_kv) * static_cast<std::size_t>(task.rows);
    const int query = static_cast<int>(row % static_cast<std::size_t>(task.queries));
    return max(task.length(static_cast<int>(row / per_sequence)) - (task.queries - 1 - query), 0);
}

// Idea: the online softmax of day 26, with all warps of a block for one row.
// Cost removed: none yet, this is the start. A score is never stored.
// Still limits it: one block for each row. With 32 heads and one sequence, 100 of an H200's 132 SMs
// have no work, and the other 32 do not have enough loads in flight.
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) row_per_block(Task<T> task) {
    const std::size_t row = blockIdx.x;
    const Part part = attend_row<T, D>(task, row, 0, visible_keys(task, row));
    if (threadIdx.x < D) task.out[row * D + threadIdx.x] = T(part.result());
}

template <class T>
std::size_t all_rows(const Task<T>& task) {
    return static_cast<std::size_t>(task.batch) * task.heads_kv * task.rows;
}

template <class T, int D>
void launch_row_per_block(const Task<T>& task, cudaStream_t stream) {
    row_per_block<T, D><<<course::blocks_for(all_rows(task), 1), kWarps * 32, 0, stream>>>(task);
}

// --- Several blocks for each row -----------------------------------------------------------------

// Part `index`, in the workspace: D sums, the maximum, the sum of exponentials. Rows of 16 bytes.
template <int D>
constexpr int kPartSize = D + 4;

template <int D>
__device__ void store_part(float* parts, std::size_t index, int col, const Part& part) {
    float* const to = parts + index * kPartSize<D>;
    to[col] = part.out;
    if (col == 0) {
        to[D] = part.max;
        to[D + 1] = part.sum;
    }
}
template <int D>
__device__ Part load_part(const float* parts, std::size_t index, int col) {
    const float* const from = parts + index * kPartSize<D>;
    return {from[D], from[D + 1], from[col]};
}

struct Range {
    int first;
    int last;
};

// Range `split` of `splits` equal ones, in multiples of `step`; the last ones may be empty.
__device__ inline Range range_of(int length, int split, int splits, int step) {
    const int share = course::ceil_div(course::ceil_div(length, splits), step) * step;
    const int first = min(split * share, length);
    return {first, min(first + share, length)};
}

// Idea: divide the keys of a row among `splits` blocks. Each stores a part; combine_splits adds
// them up.
// Cost removed: idle SMs. There are as many blocks as the GPU can use, for a single sequence, too.
// Still limits it: with grouped-query attention, the 4 or 8 heads of a group load the same K and V,
// from L2 if not from memory. With one head of K for each of Q, the latency of 8-byte loads: warps
// wait for them 69 % of the time (counters: memory 58 % busy, L2 70 %).
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) split_keys(Task<T> task, int splits, float* parts) {
    const std::size_t row = blockIdx.x / static_cast<unsigned>(splits);
    const auto split = static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
    const Range keys = range_of(visible_keys(task, row), split, splits, 1);
    const Part part = attend_row<T, D>(task, row, keys.first, keys.last);
    if (threadIdx.x < D) store_part<D>(parts, blockIdx.x, static_cast<int>(threadIdx.x), part);
}

// The second kernel: a block for each row, a thread for each column.
template <class T, int D>
__global__ void __launch_bounds__(D) combine_splits(const float* parts, int splits, T* out) {
    const auto col = static_cast<int>(threadIdx.x);
    Part whole;
    for (int split = 0; split < splits; ++split)
        whole.add(load_part<D>(parts, static_cast<std::size_t>(blockIdx.x) * splits + split, col));
    out[static_cast<std::size_t>(blockIdx.x) * D + threadIdx.x] = T(whole.result());
}

template <class T, int D>
void launch_combine_splits(const float* parts, int splits, T* out, std::size_t rows, cudaStream_t stream) {
    combine_splits<T, D><<<course::blocks_for(rows, 1), D, 0, stream>>>(parts, splits, out);
}

constexpr int kLeastKeys = 16 * kWarps;  // of a block
constexpr std::size_t kRowBlocks = 4;    // of split_keys on an SM: they take little shared memory

// How many blocks share a row on a GPU that runs `blocks` of them at the same time: enough to fill
// it, but each with at least kLeastKeys keys.
inline int splits_for(std::size_t rows, std::size_t tokens, std::size_t blocks) {
    const std::size_t most = course::ceil_div<std::size_t>(std::max<std::size_t>(tokens, 1), kLeastKeys);
    const std::size_t wanted = blocks / std::max<std::size_t>(rows, 1);
    return static_cast<int>(std::clamp<std::size_t>(wanted, 1, most));
}

// `parts` has room for rows x splits parts of kPartSize<D> floats.
template <class T, int D>
void launch_split_keys(const Task<T>& task, int splits, float* parts, cudaStream_t stream) {
    const std::size_t rows = all_rows(task);
    const unsigned blocks = course::blocks_for(rows * static_cast<std::size_t>(splits), 1);
    split_keys<T, D><<<blocks, kWarps * 32, 0, stream>>>(task, splits, parts);
    launch_combine_splits<T, D>(parts, splits, task.out, rows, stream);
}

}  // namespace day29
