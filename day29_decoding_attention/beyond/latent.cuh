// Day 29, beyond: latent attention. One key for all heads, whose first part is the value.
//
//   version        what is new
//   latent_rows    a block for each head; each warp reads whole keys
//   latent_tile    16 heads share a tile of 64 keys in shared memory; several blocks for a sequence
//   latent_ring    the next tile is in flight while this one is multiplied
//   latent_wide    64 heads share a tile
#pragma once

#include "common/device/half_fragment.cuh"
#include "common/device/launch.hpp"
#include "decoding_attention.cuh"
#include "latent.hpp"

namespace day29 {

// Arguments of all kernels. A row is one head of one sequence.
struct LatentTask {
    using T = LatentDecoding::T;

    const T* q;
    const T* cache;
    const int* lengths;
    T* out;
    int batch;
    int heads;
    int capacity;
    float scale;  // contains log2(e)

    __device__ int length(int sequence) const { return min(max(lengths[sequence], 0), capacity); }
};

constexpr int kRopeColumns = static_cast<int>(kRope);
template <int RANK>
constexpr int kWidth = RANK + kRopeColumns;

// --- A block for each row ------------------------------------------------------------------------

// Idea: row_per_block of the core. A lane has every 32nd pair of a key's numbers; the pairs of the
// latent, all but the last, are the value, too.
// Cost removed: none yet. A token is read once for its key and its value.
// Still limits it: issue slots, 73 % busy. latent_tile, in which 16 heads share the keys and tensor
// cores multiply, takes 0.807 ms in place of 5.60 (64 sequences of 4,096 tokens, 128 heads, H200).
template <int RANK>
__global__ void __launch_bounds__(kWarps * 32) latent_rows(LatentTask task) {
    using T = LatentTask::T;
    constexpr int PAIRS = kWidth<RANK> / 64;  // of a lane
    constexpr int VALUES = RANK / 64;         // of them, those of the latent
    __shared__ float outs[kWarps][RANK];
    __shared__ float maxima[kWarps];
    __shared__ float sums[kWarps];
    const std::size_t row = blockIdx.x;
    const auto sequence = static_cast<int>(row / static_cast<std::size_t>(task.heads));
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int length = task.length(sequence);
    const auto* const q = reinterpret_cast<const unsigned*>(task.q + row * kWidth<RANK>);
    const auto* const keys = reinterpret_cast<const unsigned*>(
        task.cache + static_cast<std::size_t>(sequence) * task.capacity * kWidth<RANK>);

    float2 query[PAIRS];
#pragma unroll
    for (int i = 0; i < PAIRS; ++i)
        query[i] = course::both_of<T>(q[i * 32 + lane]);
    float max = -kInfinity;
    float sum = 0;
    float2 out[VALUES] = {};
    for (int key = warp; key < length; key += kWarps) {
        float2 pairs[PAIRS];
        float score = 0;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            pairs[i] =
                course::both_of<T>(keys[static_cast<std::size_t>(key) * (kWidth<RANK> / 2) + i * 32 + lane]);
            score += query[i].x * pairs[i].x + query[i].y * pairs[i].y;
        }
        score = course::warp_reduce(score, [](float x, float y) { return x + y; }) * task.scale;
        const float new_max = fmaxf(max, score);
        const float factor = weight_of(max, new_max);
        const float p = weight_of(score, new_max);
        max = new_max;
        sum = sum * factor + p;
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            out[i].x = out[i].x * factor + p * pairs[i].x;
            out[i].y = out[i].y * factor + p * pairs[i].y;
        }
    }
#pragma unroll
    for (int i = 0; i < VALUES; ++i) {
        outs[warp][(i * 32 + lane) * 2] = out[i].x;
        outs[warp][(i * 32 + lane) * 2 + 1] = out[i].y;
    }
    if (lane == 0) {
        maxima[warp] = max;
        sums[warp] = sum;
    }
    __syncthreads();
    for (int col = static_cast<int>(threadIdx.x); col < RANK; col += kWarps * 32) {
        Part whole;
        for (int w = 0; w < kWarps; ++w)
            whole.add({maxima[w], sums[w], outs[w][col]});
        task.out[row * RANK + col] = T(whole.result());
    }
}

template <int RANK>
void launch_latent_rows(const LatentTask& task, cudaStream_t stream) {
    const std::size_t rows = static_cast<std::size_t>(task.batch) * task.heads;
    latent_rows<RANK><<<course::blocks_for(rows, 1), kWarps * 32, 0, stream>>>(task);
}

// --- Heads share a tile of keys ------------------------------------------------------------------

constexpr int kLatentKeys = 64;  // of a tile: 8 for each warp

// Rows of packs of 8 numbers, swizzled as Tile in warp_rows.cuh: ldmatrix reads 8 rows of a pack
// without bank conflicts.
template <int PACKS>
__device__ int swizzled(int row, int pack) {
    return row * PACKS + (pack ^ row % 8);
}

// What a block has in shared memory: STAGES tiles of keys, 16 R queries, and the weights of a tile.
template <int RANK, int R, int STAGES>
struct LatentBlock {
    static constexpr int kPacks = kWidth<RANK> / 8;

    uint4 keys[STAGES][kLatentKeys * kPacks];
    uint4 queries[16 * R * kPacks];
    uint4 weights[16 * R * (kLatentKeys / 8)];
    float of_warp[kWarps][16 * R];  // maxima, at the end sums
};

// Idea: 16 R heads are the rows of one matrix. First each warp multiplies all queries by 8 keys of
// the tile; then all weights are in shared memory, and each warp has an eighth of the columns of
// the result. So no warp has more than 16 R x RANK / 8 sums: with all columns, 16 heads would take
// 256 registers of a thread. With STAGES = 2 the next tile is in flight in the meantime.
// Cost removed: a key is loaded once for 16 R heads, and is key and value from one copy.
// Still limits it: with STAGES = 1, latency: waiting for each copy (807 µs, and 681 with 2). With
// R = 1, that only 16 heads share a key: 681 µs, and 414 with R = 4. With that, shared memory, with
// the L1 cache in the same unit 63 % busy.
template <int RANK, int R, int STAGES>
__global__ void __launch_bounds__(kWarps * 32) latent_tile(LatentTask task, int splits, float* parts) {
    using T = LatentTask::T;
    using Block = LatentBlock<RANK, R, STAGES>;
    constexpr int PACKS = Block::kPacks;
    constexpr int COLS = RANK / kWarps;  // of a warp
    extern __shared__ __align__(128) unsigned char memory[];
    Block& block = *reinterpret_cast<Block*>(memory);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int g = lane / 4;  // of a fragment, this lane has the rows g and g + 8
    const int t = lane % 4;
    // Adjacent blocks have the same keys.
    const int tiles = course::ceil_div(task.heads, 16 * R);
    const auto first_head = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles)) * 16 * R;
    const auto range = static_cast<int>(blockIdx.x / static_cast<unsigned>(tiles));
    const int sequence = range / splits;
    const int split = range % splits;
    const int length = task.length(sequence);
    const Range keys = range_of(length, split, splits, kLatentKeys);
    const std::size_t first_row = static_cast<std::size_t>(sequence) * task.heads + first_head;
    const auto* const cache = reinterpret_cast<const uint4*>(task.cache + static_cast<std::size_t>(sequence) *
                                                                              task.capacity * kWidth<RANK>);

    const auto copy = [&](int step) {
        const int first = keys.first + step * kLatentKeys;
        if (first < keys.last) {
            for (int i = thread; i < kLatentKeys * PACKS; i += kWarps * 32) {
                // After the end the last key is loaded once more, and has the weight 0.
                const int key = min(first + i / PACKS, length - 1);
                course::ptx::cp_async_16(&block.keys[step % STAGES][swizzled<PACKS>(i / PACKS, i % PACKS)],
                                         cache + static_cast<std::size_t>(key) * PACKS + i % PACKS);
            }
        }
        course::ptx::cp_async_commit();  // a group for each step, also where there is no tile
    };
    for (int step = 0; step < STAGES - 1; ++step)
        copy(step);
    for (int i = thread; i < 16 * R * PACKS; i += kWarps * 32) {
        const int row = i / PACKS;
        const bool exists = first_head + row < task.heads;
        const auto* const q = reinterpret_cast<const uint4*>(task.q + (first_row + row) * kWidth<RANK>);
        block.queries[swizzled<PACKS>(row, i % PACKS)] = exists ? q[i % PACKS] : uint4{};
    }

    float max[R][2];
    float sum[R][2] = {};            // of the weights of this lane
    float out[R][COLS / 8][4] = {};  // 16 R rows x COLS columns of the warp
#pragma unroll
    for (int r = 0; r < R; ++r)
        max[r][0] = max[r][1] = -kInfinity;
    const int steps = course::ceil_div(keys.last - keys.first, kLatentKeys);
    for (int step = 0; step < steps; ++step) {
        copy(step + STAGES - 1);
        course::ptx::cp_async_wait<STAGES - 1>();
        __syncthreads();  // the tile is complete
        const uint4* const tile = block.keys[step % STAGES];

        float scores[R][4] = {};  // 16 R rows x 8 keys
        for (int c = 0; c < PACKS; c += 4) {
            unsigned k[4];  // 32 numbers of 8 keys
            course::ptx::ldmatrix_x4(k, &tile[swizzled<PACKS>(warp * 8 + lane % 8, c + lane / 8)]);
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int part = 0; part < 2; ++part) {
                    unsigned q[4];
                    course::ptx::ldmatrix_x4(
                        q, &block.queries[swizzled<PACKS>(r * 16 + lane % 16, c + part * 2 + lane / 16)]);
                    course::mma(scores[r], q, {k[part * 2], k[part * 2 + 1]}, T{});
                }
            }
        }
        const int left = length - (keys.first + step * kLatentKeys + warp * 8);  // keys that exist
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                scores[r][i] = t * 2 + i % 2 < left ? scores[r][i] * task.scale : -kInfinity;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float top = fmaxf(scores[r][i * 2], scores[r][i * 2 + 1]);
                top = fmaxf(top, __shfl_xor_sync(course::kWholeWarp, top, 1));
                top = fmaxf(top, __shfl_xor_sync(course::kWholeWarp, top, 2));
                if (t == 0) block.of_warp[warp][r * 16 + i * 8 + g] = top;
            }
        }
        __syncthreads();  // the maxima are complete

#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int row = r * 16 + i * 8 + g;
                float raised = max[r][i];
#pragma unroll
                for (int w = 0; w < kWarps; ++w)
                    raised = fmaxf(raised, block.of_warp[w][row]);
                const float factor = weight_of(max[r][i], raised);
                max[r][i] = raised;
                const float shift = raised == -kInfinity ? 0 : raised;
                const float first = course::ptx::exp2_approx(scores[r][i * 2] - shift);
                const float second = course::ptx::exp2_approx(scores[r][i * 2 + 1] - shift);
                sum[r][i] = sum[r][i] * factor + first + second;
                auto* const pairs =
                    reinterpret_cast<unsigned*>(&block.weights[swizzled<kLatentKeys / 8>(row, warp)]);
                pairs[t] = course::pair<T>(first, second);
#pragma unroll
                for (int c = 0; c < COLS / 8; ++c) {
                    out[r][c][i * 2] *= factor;
                    out[r][c][i * 2 + 1] *= factor;
                }
            }
        }
        __syncthreads();  // the weights are complete

        for (int key = 0; key < kLatentKeys; key += 16) {
            unsigned p[R][4];
#pragma unroll
            for (int r = 0; r < R; ++r)
                course::ptx::ldmatrix_x4(
                    p[r], &block.weights[swizzled<kLatentKeys / 8>(r * 16 + lane % 16, key / 8 + lane / 16)]);
#pragma unroll
            for (int c = 0; c < COLS / 8; c += 2) {
                unsigned v[4];  // 16 keys, 16 columns
                course::ptx::ldmatrix_x4_trans(
                    v, &tile[swizzled<PACKS>(key + lane % 16, warp * (COLS / 8) + c + lane / 16)]);
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    course::mma(out[r][c], p[r], {v[0], v[1]}, T{});
                    course::mma(out[r][c + 1], p[r], {v[2], v[3]}, T{});
                }
            }
        }
        __syncthreads();  // safe to overwrite
    }

#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            sum[r][i] += __shfl_xor_sync(course::kWholeWarp, sum[r][i], 1);
            sum[r][i] += __shfl_xor_sync(course::kWholeWarp, sum[r][i], 2);
            if (t == 0) block.of_warp[warp][r * 16 + i * 8 + g] = sum[r][i];
        }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = r * 16 + i * 8 + g;
            if (first_head + row >= task.heads) continue;
            float whole = 0;
            for (int w = 0; w < kWarps; ++w)
                whole += block.of_warp[w][row];
            const std::size_t index = (first_row + row) * splits + split;
#pragma unroll
            for (int c = 0; c < COLS / 8; ++c) {
                const int col = warp * COLS + c * 8 + t * 2;
                store_part<RANK>(parts, index, col, {max[r][i], whole, out[r][c][i * 2]});
                store_part<RANK>(parts, index, col + 1, {max[r][i], whole, out[r][c][i * 2 + 1]});
            }
        }
    }
}

// A block for each range of keys and 16 R heads; then the parts become one, as in split_keys.
template <int RANK, int R, int STAGES>
void launch_latent_tile(const LatentTask& task, int splits, float* parts, cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div(task.heads, 16 * R);
    const unsigned blocks = course::blocks_for(
        static_cast<std::size_t>(task.batch) * tiles * static_cast<std::size_t>(splits), 1);
    course::launch(latent_tile<RANK, R, STAGES>,
                   {blocks, kWarps * 32, sizeof(LatentBlock<RANK, R, STAGES>), stream}, task, splits, parts);
    launch_combine_splits<LatentTask::T, RANK>(parts, splits, task.out,
                                               static_cast<std::size_t>(task.batch) * task.heads, stream);
}

}  // namespace day29
