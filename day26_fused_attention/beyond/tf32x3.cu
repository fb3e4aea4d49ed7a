// Day 26, beyond: the version tf32x3: FP32 accuracy from tensor cores.
//
// Each operand is split into the sum of two TF32 numbers, and a product becomes three products on
// tensor cores (common/tile/tf32_split.cuh explains the errors). What is new here is the path of
// the weights. A lane's accumulators of Q K^T are the columns 2 t and 2 t + 1 of a row (t = lane %
// 4). The left operand of p V needs columns t and t + 4. But a sum does not depend on the order of
// its terms: we call key 2 t column t and key 2 t + 1 column t + 4, and load the rows of V in the
// same order. So p stays in registers.
//
//     a block    BM rows of Q; two stages of BN keys: one is multiplied, the other is in flight
//     a warp     16 or 32 rows of Q and all keys of a tile: a split factor serves all its rows
#include "attention_tile.cuh"
#include "common/device/tensor_core_support.hpp"
#include "common/tile/tf32_split.cuh"
#include "launch.cuh"
#include "online_softmax.cuh"

namespace day26 {
namespace {

using course::split;
using course::SplitOperands;

template <int D_, int BN_, int WARPS_, int GROUPS_, int BLOCKS_>
struct Tile {
    static constexpr int D = D_;
    static constexpr int BN = BN_;
    static constexpr int GROUPS = GROUPS_;  // of 16 rows, of a warp
    static constexpr int BLOCKS = BLOCKS_;  // on an SM
    static constexpr int BM = WARPS_ * GROUPS * 16;
    static constexpr int THREADS = WARPS_ * 32;
    static constexpr int ACROSS = BN / 8;  // instructions for 16 x BN scores, side by side
};

// ROWS x D floats in packs of four, swizzled so that lanes that load together use different banks.
// From Q and K they load 4 packs each of 2 adjacent rows, from V 2 packs each of every second of 8
// rows.
template <int ROWS, int D>
struct Swizzled {
    float rows[ROWS][D];

    __device__ float* pack(int row, int index) { return &rows[row][(index ^ row % 2 * 4) * 4]; }
    __device__ float* pack_of_v(int row, int index) { return &rows[row][(index ^ row / 2 % 4 * 2) * 4]; }
};

template <class S>
struct Stage {
    Swizzled<S::BN, S::D> k;
    Swizzled<S::BN, S::D> v;
};

template <class S>
struct Shared {
    Swizzled<S::BM, S::D> q;
    Stage<S> stages[2];
};

// sums += a b for N products side by side. N independent instructions lie between two that add to
// the same sum. The small products come first, because added to a large sum, more of their bits
// would be cut off.
template <int N>
__device__ void multiply_split(const SplitOperands<4>& a, const SplitOperands<2> (&b)[N],
                               float (&sums)[N][4]) {
#pragma unroll
    for (int j = 0; j < N; ++j)
        course::ptx::mma_m16n8k8_tf32(sums[j], a.small, b[j].big);
#pragma unroll
    for (int j = 0; j < N; ++j)
        course::ptx::mma_m16n8k8_tf32(sums[j], a.big, b[j].small);
#pragma unroll
    for (int j = 0; j < N; ++j)
        course::ptx::mma_m16n8k8_tf32(sums[j], a.big, b[j].big);
}

// This lane's part of Q K^T and of the result: of each instruction's tile, rows g and g + 8 (g =
// lane / 4), columns 2 t and 2 t + 1.
template <class S>
using Scores = float[S::GROUPS][S::ACROSS][4];
template <class S>
using Out = float[S::GROUPS][S::D / 32][4][4];

// scores = Q K^T. `row` is the lane's first row. Of 16 columns of Q and K, a lane loads 4 t to 4 t
// + 3 as one float4. We call them columns t and t + 4 of one instruction, and t and t + 4 of the
// next.
template <class S>
__device__ void multiply_keys(Swizzled<S::BM, S::D>& q, Swizzled<S::BN, S::D>& keys, int row, int g, int t,
                              Scores<S>& scores) {
#pragma unroll
    for (int block = 0; block < S::D / 16; ++block) {
        course::Pack<float, 4> k[S::ACROSS];
#pragma unroll
        for (int j = 0; j < S::ACROSS; ++j)
            k[j] = course::Pack<float, 4>::load(keys.pack(j * 8 + g, block * 4 + t));
        course::Pack<float, 4> rows[S::GROUPS * 2];
#pragma unroll
        for (int i = 0; i < S::GROUPS * 2; ++i)
            rows[i] = course::Pack<float, 4>::load(q.pack(row + i * 8, block * 4 + t));
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            SplitOperands<2> b[S::ACROSS];
#pragma unroll
            for (int j = 0; j < S::ACROSS; ++j)
                b[j] = split({k[j].value[n], k[j].value[n + 1]});
#pragma unroll
            for (int i = 0; i < S::GROUPS; ++i) {
                const auto& upper = rows[i * 2].value;
                const auto& lower = rows[i * 2 + 1].value;
                multiply_split(split({upper[n], lower[n], upper[n + 1], lower[n + 1]}), b, scores[i]);
            }
        }
    }
}

// out += p V, 32 columns at a time: column g of instruction j is column 4 g + j. Tensor cores add
// up the keys of one tile; CUDA cores, which round to nearest, add that sum to out.
template <class S>
__device__ void multiply_values(const Scores<S>& p, Swizzled<S::BN, S::D>& values, int g, int t,
                                Out<S>& out) {
#pragma unroll
    for (int block = 0; block < S::D / 32; ++block) {
        float sums[S::GROUPS][4][4] = {};
#pragma unroll
        for (int k = 0; k < S::ACROSS; ++k) {
            const auto first = course::Pack<float, 4>::load(values.pack_of_v(k * 8 + t * 2, block * 8 + g));
            const auto second =
                course::Pack<float, 4>::load(values.pack_of_v(k * 8 + t * 2 + 1, block * 8 + g));
            SplitOperands<2> b[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                b[j] = split({first.value[j], second.value[j]});
#pragma unroll
            for (int i = 0; i < S::GROUPS; ++i)
                multiply_split(split({p[i][k][0], p[i][k][2], p[i][k][1], p[i][k][3]}), b, sums[i]);
        }
#pragma unroll
        for (int i = 0; i < S::GROUPS * 16; ++i)
            out[i / 16][block][i / 4 % 4][i % 4] += sums[i / 16][i / 4 % 4][i % 4];
    }
}

// Idea: both matrix products on tensor cores, three products of TF32 numbers for each. The
// accumulators of the first are the left operand of the second.
// Cost removed: the multiply-adds of CUDA cores; the stores and loads of p in shared memory.
// Still limits it: three products for each one, and every warp splits the operands from K and V for
// itself. Counters: tensor cores 53 % busy; with eight warps on an SM, a warp spends 39 % of its
// time waiting for results of its own arithmetic.
template <class S, bool ALIGNED>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void attention_tf32x3(Attention<float> a,
                                                                          unsigned heads_at_once) {
    extern __shared__ float4 memory[];
    Shared<S>& shared = *reinterpret_cast<Shared<S>*>(memory);
    const RowTile<float> tile = row_tile<S::BM>(a, heads_at_once);
    const int dim = a.q.dim();
    const auto copy = [&](int number) {
        Stage<S>& stage = shared.stages[number % 2];
        const int first = number * S::BN;
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(tile.k, a.k.strides().row, first, tile.length_k, dim,
                                                    [&](int row, int i) { return stage.k.pack(row, i); });
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(
            tile.v, a.v.strides().row, first, tile.length_k, dim,
            [&](int row, int i) { return stage.v.pack_of_v(row, i); });
        course::ptx::cp_async_commit();
    };
    copy_tile<S::BM, S::D, S::THREADS, ALIGNED>(tile.q, a.q.strides().row, tile.first, tile.length_q, dim,
                                                [&](int row, int i) { return shared.q.pack(row, i); });
    copy(0);

    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const int t = static_cast<int>(threadIdx.x) % 4;
    const int first_row = static_cast<int>(threadIdx.x) / 32 * S::GROUPS * 16 + g;  // of this lane
    constexpr int kRows = S::GROUPS * 2;                                            // 8 apart
    int seen[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row)
        seen[row] = tile.seen_by(tile.first + first_row + row * 8);
    const float scale = a.scale * kLog2E;
    OnlineSoftmax<kRows, 4> softmax;
    Out<S> out = {};
    for (int number = 0; number * S::BN < tile.keys; ++number) {
        const int first = number * S::BN;
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete, and the one before it safe to overwrite
        copy(number + 1);
        Stage<S>& stage = shared.stages[number % 2];

        Scores<S> scores = {};
        const auto score = [&](int row, int i) -> float& {
            return scores[row / 2][i / 2][row % 2 * 2 + i % 2];
        };
        multiply_keys<S>(shared.q, stage.k, first_row, g, t, scores);
        if (first + S::BN > tile.all_see) {
#pragma unroll
            for (int i = 0; i < kRows * S::ACROSS * 2; ++i) {
                const int row = i / (S::ACROSS * 2);
                const int col = i % (S::ACROSS * 2);
                if (first + col / 2 * 8 + t * 2 + col % 2 >= seen[row]) score(row, col) = -kInfinity;
            }
            set_apart_non_finite<S::BN, S::D, S::THREADS>(
                [&](int key, int col) { return stage.v.pack_of_v(key, col / 4) + col % 4; },
                [&](int key) {
#pragma unroll
                    for (int i = 0; i < S::GROUPS * S::D / 2; ++i) {
                        const int row = i / (S::D / 2) * 2 + i / 2 % 2;
                        const float x =
                            stage.v.pack_of_v(key, i / 16 % (S::D / 32) * 8 + t * 2 + i % 2)[i / 4 % 4];
                        if (first + key < seen[row] && !is_finite(x))
                            out[row / 2][i / 16 % (S::D / 32)][i / 4 % 4][i % 4] += x;
                    }
                });
        }

        float factor[kRows];
        if (softmax.template raise_maximum<S::ACROSS * 2>(scale, score, factor)) {
#pragma unroll
            for (int i = 0; i < S::GROUPS * S::D / 2; ++i)
                out[i / (S::D / 2)][i / 16 % (S::D / 32)][i / 4 % 4][i % 4] *=
                    factor[i / (S::D / 2) * 2 + i / 2 % 2];
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const float shift = softmax.shift(row);
#pragma unroll
            for (int i = 0; i < S::ACROSS * 2; ++i)
                score(row, i) = softmax.weight(row, score(row, i), scale, shift);
        }
        multiply_values<S>(scores, stage.v, g, t, out);
    }

    // Of each 32 columns a lane has 8 adjacent ones: column 2 t of four instructions, then column 2
    // t + 1.
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        const float inverse = softmax.inverse_of_sum(i);
        const int row = tile.first + first_row + i * 8;
        if (row >= tile.length_q) continue;
        float* const to = tile.out + static_cast<std::size_t>(row) * a.out.strides().row;
#pragma unroll
        for (int eight = 0; eight < S::D / 16; ++eight) {
            course::Pack<float, 4> pack;
#pragma unroll
            for (int j = 0; j < 4; ++j)
                pack.value[j] = out[i / 2][eight / 2][j][i % 2 * 2 + eight % 2] * inverse;
            write_pack<ALIGNED>(to, eight / 2 * 32 + t * 8 + eight % 2 * 4, dim, pack);
        }
    }
}

template <int D>
using TileFor = Tile<D, 32, 4, D <= 64 ? 2 : 1, 2>;

std::string constraint(const Shape&) {
    return course::why_no_tensor_cores(attention_tf32x3<TileFor<64>, true>, sizeof(Shared<TileFor<64>>));
}

// Unaligned rows of any dim take the tile of kMaxDim, to compile fewer kernels.
void launch(const Attention<float>& attention, cudaStream_t stream) {
    if (const std::string reason = constraint({}); !reason.empty())
        throw std::invalid_argument("fused attention: tf32x3 " + reason);
    if (!check_arguments(attention)) return;
    const auto run = [&](auto dim, auto aligned) {
        using S = TileFor<dim()>;
        launch_tiles<S::BM>(attention_tf32x3<S, aligned()>, S::THREADS, sizeof(Shared<S>), attention, stream);
    };
    if (!rows_are_aligned(attention)) {
        run(std::integral_constant<int, kMaxDim>(), std::false_type());
    } else {
        with_dim<32, 64, 96, 128>(attention.q.extents().dim, [&](auto dim) { run(dim, std::true_type()); });
    }
}

}  // namespace

Version<float> tf32x3() {
    return {.name = "tf32x3",
            .idea = "both products on tensor cores, FP32 operands split into two TF32 numbers each",
            .launcher = launch,
            .work = work<float>,
            .constraint = constraint};
}

}  // namespace day26
