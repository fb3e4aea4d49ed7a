// Fused attention, third version: FP32 accuracy from tensor cores.
//
// Every factor becomes a sum of two TF32 numbers, and a product three products on tensor cores (common/tf32_split.cuh). What this
// version adds to that is what becomes of the scores: the layout in which mma leaves Q K^T is almost the one in which it wants the left
// factor of p V. A lane has the scores of columns 2 t and 2 t + 1, and should have the weights of columns t and t + 4; but sums do not ask for an
// order, so key 2 t is called column t, and key 2 t + 1 column t + 4. p never leaves its registers.
//
//     a block    BM rows of Q; two stages of BN keys, one of which is on its way
//     a warp     16 rows of Q, and all keys of a tile
#include "attention_tile.cuh"
#include "common/tf32_split.cuh"
#include "launch.cuh"

namespace day25::fused {
namespace {

using course::split;
using course::SplitFactors;

template <int D_, int BN_, int WARPS_, int BLOCKS_>
struct Tile {
    static constexpr int D = D_;
    static constexpr int BN = BN_;
    static constexpr int BLOCKS = BLOCKS_;  // on a multiprocessor
    static constexpr int BM = WARPS_ * 16;
    static constexpr int THREADS = WARPS_ * 32;
    static constexpr int ACROSS = BN / 8;  // instructions for 16 x BN scores, side by side
};

// ROWS x D floats in packs of four, moved within a row so that the lanes that load at the same time meet different banks. Of Q and K they load
// 4 packs each of 2 neighbouring rows, of V 2 packs each of every other of 8 rows. Copies write whole rows.
template <int ROWS, int D>
struct Swizzled {
    float rows[ROWS][D];

    __device__ float* pack(int row, int index) { return &rows[row][(index ^ row % 2 * 4) * 4]; }
    __device__ float* pack_of_v(int row, int index) { return &rows[row][(index ^ row / 2 % 4 * 2) * 4]; }
};

template <class T>
struct Stage {
    Swizzled<T::BN, T::D> k;
    Swizzled<T::BN, T::D> v;
};

template <class T>
struct Shared {
    Swizzled<T::BM, T::D> q;
    Stage<T> stages[2];
};

// sums += a b for N instructions side by side. One product for all of them in turn, so that no instruction needs the result of the one before;
// the small products first, while there is nothing large in the sum that would cut them off.
template <int N>
__device__ void multiply_split(const SplitFactors<4>& a, const SplitFactors<2> (&b)[N], float (&sums)[N][4]) {
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

// scores = Q K^T, for rows `row` and `row` + 8 of Q. Of 16 columns, a lane has 4 t to 4 t + 3: they are called column t and t + 4 of one
// instruction, t and t + 4 of the next.
template <class T>
__device__ void multiply_keys(Swizzled<T::BM, T::D>& q, Swizzled<T::BN, T::D>& keys, int row, int g, int t,
                              float (&scores)[T::ACROSS][4]) {
#pragma unroll
    for (int block = 0; block < T::D / 16; ++block) {
        const auto upper = course::Pack<float, 4>::load(q.pack(row, block * 4 + t));
        const auto lower = course::Pack<float, 4>::load(q.pack(row + 8, block * 4 + t));
        course::Pack<float, 4> k[T::ACROSS];
#pragma unroll
        for (int j = 0; j < T::ACROSS; ++j)
            k[j] = course::Pack<float, 4>::load(keys.pack(j * 8 + g, block * 4 + t));
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            const SplitFactors<4> a =
                split({upper.value[n], lower.value[n], upper.value[n + 1], lower.value[n + 1]});
            SplitFactors<2> b[T::ACROSS];
#pragma unroll
            for (int j = 0; j < T::ACROSS; ++j)
                b[j] = split({k[j].value[n], k[j].value[n + 1]});
            multiply_split(a, b, scores);
        }
    }
}

// out += p V, 32 columns at a time: column g of the j-th instruction is column 4 g + j. Tensor cores sum the keys of one tile, CUDA cores,
// which round to nearest, add that to what was there.
template <class T>
__device__ void multiply_values(const float (&p)[T::ACROSS][4], Swizzled<T::BN, T::D>& values, int g, int t,
                                float (&out)[T::D / 32][4][4]) {
#pragma unroll
    for (int block = 0; block < T::D / 32; ++block) {
        float sums[4][4] = {};
#pragma unroll
        for (int k = 0; k < T::ACROSS; ++k) {
            const SplitFactors<4> a = split({p[k][0], p[k][2], p[k][1], p[k][3]});
            const auto first = course::Pack<float, 4>::load(values.pack_of_v(k * 8 + t * 2, block * 8 + g));
            const auto second =
                course::Pack<float, 4>::load(values.pack_of_v(k * 8 + t * 2 + 1, block * 8 + g));
            SplitFactors<2> b[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                b[j] = split({first.value[j], second.value[j]});
            multiply_split(a, b, sums);
        }
#pragma unroll
        for (int i = 0; i < 16; ++i)
            out[block][i / 4][i % 4] += sums[i / 4][i % 4];
    }
}

// Idea: both products on tensor cores, in three products of TF32 numbers each; the weights go from one to the other in their registers.
// Cost removed: the multiply-adds of CUDA cores, and p's way through shared memory.
// Still limits it: three products for each one, and factors that every warp splits for itself.
template <class T, bool ALIGNED>
__global__ __launch_bounds__(T::THREADS, T::BLOCKS) void attention_tf32x3(Attention<float> a,
                                                                          unsigned heads_at_once) {
    extern __shared__ float4 memory[];
    Shared<T>& shared = *reinterpret_cast<Shared<T>*>(memory);
    const RowTile<float> tile = row_tile<T::BM>(a, heads_at_once);
    const int dim = a.q.dim();
    const auto copy = [&](int number) {
        Stage<T>& stage = shared.stages[number % 2];
        const int first = number * T::BN;
        copy_tile<T::BN, T::D, T::THREADS, ALIGNED>(tile.k, a.k.strides().row, first, tile.length_k, dim,
                                                    [&](int row, int i) { return stage.k.pack(row, i); });
        copy_tile<T::BN, T::D, T::THREADS, ALIGNED>(
            tile.v, a.v.strides().row, first, tile.length_k, dim,
            [&](int row, int i) { return stage.v.pack_of_v(row, i); });
        course::ptx::cp_async_commit();
    };
    copy_tile<T::BM, T::D, T::THREADS, ALIGNED>(tile.q, a.q.strides().row, tile.first, tile.length_q, dim,
                                                [&](int row, int i) { return shared.q.pack(row, i); });
    copy(0);

    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const int t = static_cast<int>(threadIdx.x) % 4;
    const int first_row =
        static_cast<int>(threadIdx.x) / 32 * 16 + g;  // of this lane; the other one is 8 below
    int seen[2];
#pragma unroll
    for (int side = 0; side < 2; ++side)
        seen[side] = tile.seen_by(tile.first + first_row + side * 8);
    const float scale = a.scale * kLog2E;
    OnlineSoftmax<2, 4> softmax;
    float out[T::D / 32][4][4] = {};
    for (int number = 0; number * T::BN < tile.keys; ++number) {
        const int first = number * T::BN;
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is there, and nobody needs the one before it any more
        copy(number + 1);
        Stage<T>& stage = shared.stages[number % 2];

        float scores[T::ACROSS][4] = {};
        multiply_keys<T>(shared.q, stage.k, first_row, g, t, scores);
        if (first + T::BN > tile.all_see) {
#pragma unroll
            for (int i = 0; i < T::ACROSS * 4; ++i) {
                if (first + i / 4 * 8 + t * 2 + i % 2 >= seen[i / 2 % 2]) scores[i / 4][i % 4] = -kInfinity;
            }
            set_apart_non_finite<T::BN, T::D, T::THREADS>(
                [&](int key, int col) { return stage.v.pack_of_v(key, col / 4) + col % 4; },
                [&](int key) {
#pragma unroll
                    for (int i = 0; i < T::D / 2; ++i) {
                        const float x = stage.v.pack_of_v(key, i / 16 * 8 + t * 2 + i % 2)[i / 4 % 4];
                        if (first + key < seen[i / 2 % 2] && !is_finite(x))
                            out[i / 16][i / 4 % 4][i % 4] += x;
                    }
                });
        }

        float factor[2];
        const auto score = [&](int row, int i) { return scores[i / 2][row * 2 + i % 2]; };
        if (softmax.template raise_maximum<T::ACROSS * 2>(scale, score, factor)) {
#pragma unroll
            for (int i = 0; i < T::D / 2; ++i)
                out[i / 16][i / 4 % 4][i % 4] *= factor[i / 2 % 2];
        }
        const float shift[2] = {softmax.shift(0), softmax.shift(1)};
#pragma unroll
        for (int i = 0; i < T::ACROSS * 4; ++i) {
            float& x = scores[i / 4][i % 4];
            x = softmax.weight(i / 2 % 2, x, scale, shift[i / 2 % 2]);
        }
        multiply_values<T>(scores, stage.v, g, t, out);
    }

    // Of each 32 columns a lane has 8 neighbours: column 2 t of four instructions, then 2 t + 1.
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const float inverse = softmax.inverse_of_sum(side);
        const int row = tile.first + first_row + side * 8;
        if (row >= tile.length_q) continue;
        float* const to = tile.out + static_cast<std::size_t>(row) * a.out.strides().row;
#pragma unroll
        for (int i = 0; i < T::D / 16; ++i) {
            course::Pack<float, 4> pack;
#pragma unroll
            for (int j = 0; j < 4; ++j)
                pack.value[j] = out[i / 2][j][side * 2 + i % 2] * inverse;
            write_pack<ALIGNED>(to, i / 2 * 32 + t * 8 + i % 2 * 4, dim, pack);
        }
    }
}

template <int D>
using TileFor = Tile<D, 32, 4, D <= 64 ? 4 : 2>;

std::string constraint(const Shape&) {
    return why_no_tensor_cores(attention_tf32x3<TileFor<64>, true>);
}

// Where rows are not aligned, one size must do for all.
void launch(const Attention<float>& attention, cudaStream_t stream) {
    if (const std::string reason = constraint({}); !reason.empty())
        throw std::invalid_argument("fused attention: tf32x3 " + reason);
    if (!check_arguments(attention)) return;
    const auto run = [&](auto dim, auto aligned) {
        using T = TileFor<dim()>;
        launch_tiles<T::BM>(attention_tf32x3<T, aligned()>, T::THREADS, sizeof(Shared<T>), attention, stream);
    };
    if (!rows_are_aligned(attention)) {
        run(std::integral_constant<int, kMaxDim>(), std::false_type());
    } else {
        with_dim<32, 64, 96, 128>(attention.q.extents().dim, [&](auto dim) { run(dim, std::true_type()); });
    }
}

}  // namespace

FusedAttention<float> tf32x3() {
    return {.name = "tf32x3",
            .idea = "both products on tensor cores, FP32 factors split into two TF32 numbers each",
            .launcher = launch,
            .work = work<float>,
            .constraint = constraint};
}

}  // namespace day25::fused
