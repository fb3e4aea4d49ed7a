// Day 26, beyond: the version tensor_cores, for FP16 and BF16: products on tensor cores, sums and
// softmax in FP32.
//
// mma.sync leaves columns 2 t and 2 t + 1 of a row in lane 4 g + t. For 16-bit types that is the
// layout of the left operand: a lane's scores of 16 keys, rounded to pairs, are its left operand of
// p V. So p stays in registers.
//
//     a block    BM rows of Q; two stages of BN keys: one is multiplied, the other is in flight
//     a warp     32 rows: each fragment of K and V serves two instructions. With 16 rows, the loads
//                from shared memory would be the limit
//     a lane     of Q K^T and of out: rows g, g + 8, g + 16, g + 24, columns 2 t, 2 t + 1 of every 8
#include "attention_tile.cuh"
#include "common/device/half_fragment.cuh"
#include "common/device/tensor_core_support.hpp"
#include "launch.cuh"
#include "online_softmax.cuh"

namespace day26 {
namespace {

using course::mma;
using course::pair;

template <int D_, int BN_, int WARPS_, int BLOCKS_>
struct Tile {
    static constexpr int D = D_;
    static constexpr int BN = BN_;
    static constexpr int BLOCKS = BLOCKS_;  // on an SM
    static constexpr int BM = WARPS_ * 32;
    static constexpr int THREADS = WARPS_ * 32;
    static constexpr int ACROSS = BN / 8;  // instructions for 16 x BN scores, side by side
};

// ROWS x D elements in packs of 8, swizzled so that the same pack of 8 consecutive rows is in
// different banks.
template <class T, int ROWS, int D>
struct Swizzled {
    T rows[ROWS][D];

    __device__ T* pack(int row, int index) {
        // True: every row starts at bank 0. False: every second row does.
        constexpr bool kRowsAlign = D % 64 == 0;
        return &rows[row][(index ^ (kRowsAlign ? row % 8 : row / 2 % 4)) * 8];
    }
};

template <class T, class S>
struct Stage {
    Swizzled<T, S::BN, S::D> k;
    Swizzled<T, S::BN, S::D> v;
};

template <class T, class S>
struct Shared {
    Swizzled<T, S::BM, S::D> q;
    Stage<T, S> stages[2];
};

// scores = Q K^T for 32 rows from `row` on.
template <class S, class T>
__device__ void multiply_keys(Swizzled<T, S::BM, S::D>& q, Swizzled<T, S::BN, S::D>& keys, int row, int lane,
                              float (&scores)[2][S::ACROSS][4]) {
// If the loop were fully unrolled (8 steps), the compiler would move the loads of all steps to the
// front, which takes too many registers.
#pragma unroll 4
    for (int c = 0; c < S::D / 8; c += 2) {
        unsigned a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            course::ptx::ldmatrix_x4(a[i], q.pack(row + i * 16 + lane % 16, c + lane / 16));
#pragma unroll
        for (int j = 0; j < S::ACROSS; j += 2) {
            unsigned k[4];  // of 16 keys
            course::ptx::ldmatrix_x4(k, keys.pack(j * 8 + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                mma(scores[i][j], a[i], {k[0], k[1]}, T{});
                mma(scores[i][j + 1], a[i], {k[2], k[3]}, T{});
            }
        }
    }
}

// out += p V for 16 keys from `key` on.
template <class S, class T>
__device__ void multiply_values(const unsigned (&p)[2][4], Swizzled<T, S::BN, S::D>& values, int key,
                                int lane, float (&out)[2][S::D / 8][4]) {
#pragma unroll
    for (int c = 0; c < S::D / 8; c += 2) {
        unsigned v[4];  // of 16 columns
        course::ptx::ldmatrix_x4_trans(v, values.pack(key + lane % 16, c + lane / 16));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            mma(out[i][c], p[i], {v[0], v[1]}, T{});
            mma(out[i][c + 1], p[i], {v[2], v[3]}, T{});
        }
    }
}

// Idea: 16-bit operands, one mma.sync for each product. The exponentials of 16 keys overlap with
// the product of the previous 16 keys.
// Cost removed: two of three products, the splitting, and half of the bytes.
// Still limits it: mma.sync, which does not reach the full rate of Hopper's tensor cores (wgmma
// does: day 41); with a head dimension of 128 also the loads of Q from shared memory.
template <class T, class S, bool ALIGNED>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void attention_tensor_cores(Attention<T> a,
                                                                                unsigned heads_at_once) {
    extern __shared__ float4 memory[];
    Shared<T, S>& shared = *reinterpret_cast<Shared<T, S>*>(memory);
    const RowTile<T> tile = row_tile<S::BM>(a, heads_at_once);
    const int dim = a.q.dim();
    const auto copy = [&](int number) {
        Stage<T, S>& stage = shared.stages[number % 2];
        const int first = number * S::BN;
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(tile.k, a.k.strides().row, first, tile.length_k, dim,
                                                    [&](int row, int i) { return stage.k.pack(row, i); });
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(tile.v, a.v.strides().row, first, tile.length_k, dim,
                                                    [&](int row, int i) { return stage.v.pack(row, i); });
        course::ptx::cp_async_commit();
    };
    copy_tile<S::BM, S::D, S::THREADS, ALIGNED>(tile.q, a.q.strides().row, tile.first, tile.length_q, dim,
                                                [&](int row, int i) { return shared.q.pack(row, i); });
    copy(0);

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * 32;
    const int t = lane % 4;
    const auto row_of = [&](int i) { return tile.first + warp_row + lane / 4 + i * 8; };
    const auto seen_by = [&](int i) { return tile.seen_by(row_of(i)); };
    const float scale = a.scale * kLog2E;
    OnlineSoftmax<4, 4> softmax;
    float out[2][S::D / 8][4] = {};
    for (int number = 0; number * S::BN < tile.keys; ++number) {
        const int first = number * S::BN;
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete, and the one before it safe to overwrite
        copy(number + 1);
        Stage<T, S>& stage = shared.stages[number % 2];

        float scores[2][S::ACROSS][4] = {};
        multiply_keys<S>(shared.q, stage.k, warp_row, lane, scores);
        if (first + S::BN > tile.all_see) {
#pragma unroll
            for (int row = 0; row < 4; ++row) {
                const int seen = seen_by(row) - first - t * 2;
#pragma unroll
                for (int j = 0; j < S::ACROSS * 2; ++j) {
                    if (j / 2 * 8 + j % 2 >= seen) scores[row / 2][j / 2][row % 2 * 2 + j % 2] = -kInfinity;
                }
            }
            set_apart_non_finite<S::BN, S::D, S::THREADS>(
                [&](int key, int col) { return stage.v.pack(key, col / 8) + col % 8; },
                [&](int key) {
#pragma unroll
                    for (int i = 0; i < S::D; ++i) {
                        const int row = i / (S::D / 4);
                        const int col = i % (S::D / 4);
                        const auto x = static_cast<float>(stage.v.pack(key, col / 2)[t * 2 + col % 2]);
                        if (first + key < seen_by(row) && !is_finite(x))
                            out[row / 2][col / 2][row % 2 * 2 + col % 2] += x;
                    }
                });
        }

        float factor[4];
        const auto score = [&](int row, int j) { return scores[row / 2][j / 2][row % 2 * 2 + j % 2]; };
        if (softmax.template raise_maximum<S::ACROSS * 2>(scale, score, factor)) {
#pragma unroll
            for (int i = 0; i < S::D; ++i)
                out[i / (S::D / 2)][i / 4 % (S::D / 8)][i % 4] *= factor[i / (S::D / 2) * 2 + i / 2 % 2];
        }
        const float shift[4] = {softmax.shift(0), softmax.shift(1), softmax.shift(2), softmax.shift(3)};
#pragma unroll
        for (int j = 0; j < S::ACROSS; j += 2) {
            unsigned p[2][4];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int row = i / 4 * 2 + i % 2;
                const float* const two = &scores[i / 4][j + i / 2 % 2][i % 2 * 2];
                p[i / 4][i % 4] = pair<T>(softmax.weight(row, two[0], scale, shift[row]),
                                          softmax.weight(row, two[1], scale, shift[row]));
            }
            multiply_values<S>(p, stage.v, j * 8, lane, out);
        }
    }

#pragma unroll
    for (int row = 0; row < 4; ++row) {
        const float inverse = softmax.inverse_of_sum(row);
        if (row_of(row) >= tile.length_q) continue;
        T* const to = tile.out + static_cast<std::size_t>(row_of(row)) * a.out.strides().row;
#pragma unroll
        for (int c = 0; c < S::D / 8; ++c) {
            const float* const two = &out[row / 2][c][row % 2 * 2];
            course::Pack<T, 2> both;
            const unsigned bits = pair<T>(two[0] * inverse, two[1] * inverse);
            memcpy(&both, &bits, sizeof(both));
            write_pack<ALIGNED>(to, c * 8 + t * 2, dim, both);
        }
    }
}

template <int D>
using TileFor = Tile<D, D <= 64 ? 64 : 32, 4, 2>;

template <class T>
std::string constraint(const Shape&) {
    return course::why_no_tensor_cores(attention_tensor_cores<T, TileFor<64>, true>,
                                       sizeof(Shared<T, TileFor<64>>));
}

// Unaligned rows of any dim take the tile of kMaxDim, to compile fewer kernels.
template <class T>
void launch(const Attention<T>& attention, cudaStream_t stream) {
    if (const std::string reason = constraint<T>({}); !reason.empty())
        throw std::invalid_argument("fused attention: tensor_cores " + reason);
    if (!check_arguments(attention)) return;
    const auto run = [&](auto dim, auto aligned) {
        using S = TileFor<dim()>;
        launch_tiles<S::BM>(attention_tensor_cores<T, S, aligned()>, S::THREADS, sizeof(Shared<T, S>),
                            attention, stream);
    };
    if (!rows_are_aligned(attention)) {
        run(std::integral_constant<int, kMaxDim>(), std::false_type());
    } else {
        with_dim<32, 64, 96, 128>(attention.q.extents().dim, [&](auto dim) { run(dim, std::true_type()); });
    }
}

}  // namespace

template <class T>
Version<T> tensor_cores() {
    return {.name = "tensor_cores",
            .idea = "both products on tensor cores, weights rounded to the type of V",
            .launcher = launch<T>,
            .work = work<T>,
            .constraint = constraint<T>};
}

template Version<__half> tensor_cores();
template Version<__nv_bfloat16> tensor_cores();

}  // namespace day26
