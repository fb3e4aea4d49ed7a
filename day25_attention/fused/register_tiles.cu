// Fused attention, second version: tiles of keys in shared memory, register tiles as in a matrix product, FP32 on CUDA cores.
//
//     a block    BM rows of Q, and BN keys at a time; while K is multiplied, V is on its way, and the other way round
//     a warp     32 rows: its p go to shared memory and come back without a barrier of the block
//     a thread   8 rows x 8 keys of Q K^T, then the same 8 rows x D / 8 columns of p V
#include <algorithm>
#include <stdexcept>
#include <string>

#include "attention_tile.cuh"
#include "launch.cuh"

namespace day25::fused {
namespace {

template <int D_, int KEYS_, int WARPS_, int BLOCKS_>
struct Tile {
    static constexpr int D = D_;
    static constexpr int WARPS = WARPS_;
    static constexpr int BLOCKS = BLOCKS_;  // on a multiprocessor
    static constexpr int BM = WARPS * 32;
    static constexpr int KEYS = KEYS_;  // of a thread, 8 apart: 8 lanes x KEYS keys
    static constexpr int BN = KEYS * 8;
    static constexpr int THREADS = WARPS * 32;
    static constexpr int ROWS = 8;      // of a thread, 4 apart: 4 lanes x 8 rows
    static constexpr int COLS = D / 8;  // of a thread, in fours
};

// Four floats more in a row, so that a float4 of each of 8 neighbouring rows lies in banks of its own.
template <class T>
struct Shared {
    float q[T::BM][T::D + 4];
    float k[T::BN][T::D + 4];
    float v[T::BN][T::D];
    float p[T::BM][T::BN + 4];
};

// Idea: Q K^T and p V are matrix products whose left factor stays: tiles of K and V serve all rows of a block.
// Cost removed: loads; a value from shared memory takes part in 8 multiply-adds or more.
// Still limits it: the rate of FP32 multiply-adds, which the softmax between the two products shares.
template <class T, bool ALIGNED>
__global__ __launch_bounds__(T::THREADS, T::BLOCKS) void attention_register_tiles(Attention<float> a,
                                                                                  unsigned heads_at_once) {
    using Pack = course::Pack<float, 4>;
    extern __shared__ float4 memory[];
    Shared<T>& shared = *reinterpret_cast<Shared<T>*>(memory);
    const RowTile<float> tile = row_tile<T::BM>(a, heads_at_once);
    const int dim = a.q.dim();
    const auto copy_k = [&](int first) {
        copy_tile<T::BN, T::D, T::THREADS, ALIGNED>(
            tile.k, a.k.strides().row, first, tile.length_k, dim,
            [&](int row, int pack) { return &shared.k[row][pack * 4]; });
        course::ptx::cp_async_commit();
    };
    const auto copy_v = [&](int first) {
        copy_tile<T::BN, T::D, T::THREADS, ALIGNED>(
            tile.v, a.v.strides().row, first, tile.length_k, dim,
            [&](int row, int pack) { return &shared.v[row][pack * 4]; });
        course::ptx::cp_async_commit();
    };
    copy_tile<T::BM, T::D, T::THREADS, ALIGNED>(tile.q, a.q.strides().row, tile.first, tile.length_q, dim,
                                                [&](int row, int pack) { return &shared.q[row][pack * 4]; });
    copy_k(0);
    copy_v(0);

    const int lane_row = static_cast<int>(threadIdx.x) % 32 / 8;
    const int lane_col = static_cast<int>(threadIdx.x) % 8;
    const auto row_of = [&](int i) { return static_cast<int>(threadIdx.x) / 32 * 32 + i * 4 + lane_row; };
    const auto seen_by = [&](int i) { return tile.seen_by(tile.first + row_of(i)); };
    const float scale = a.scale * kLog2E;
    OnlineSoftmax<T::ROWS, 8> softmax;
    float out[T::ROWS][T::COLS] = {};
    for (int first = 0; first < tile.keys; first += T::BN) {
        course::ptx::cp_async_wait<1>();
        __syncthreads();  // K is there

        float scores[T::ROWS][T::KEYS] = {};
#pragma unroll 2
        for (int c = 0; c < T::D; c += 4) {
            Pack k[T::KEYS];
#pragma unroll
            for (int j = 0; j < T::KEYS; ++j)
                k[j] = Pack::load(&shared.k[j * 8 + lane_col][c]);
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i) {
                const Pack q = Pack::load(&shared.q[row_of(i)][c]);
#pragma unroll
                for (int n = 0; n < 4; ++n) {
#pragma unroll
                    for (int j = 0; j < T::KEYS; ++j)
                        scores[i][j] += q.value[n] * k[j].value[n];
                }
            }
        }

        const bool masked = first + T::BN > tile.all_see;
        if (masked) {
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i) {
#pragma unroll
                for (int j = 0; j < T::KEYS; ++j) {
                    if (first + j * 8 + lane_col >= seen_by(i)) scores[i][j] = -kInfinity;
                }
            }
        }
        float factor[T::ROWS];
        const auto score = [&](int i, int j) { return scores[i][j]; };
        if (softmax.template raise_maximum<T::KEYS>(scale, score, factor)) {
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i) {
#pragma unroll
                for (int c = 0; c < T::COLS; ++c)
                    out[i][c] *= factor[i];
            }
        }
#pragma unroll
        for (int i = 0; i < T::ROWS; ++i) {
            const float shift = softmax.shift(i);
#pragma unroll
            for (int j = 0; j < T::KEYS; ++j)
                shared.p[row_of(i)][j * 8 + lane_col] = softmax.weight(i, scores[i][j], scale, shift);
        }

        course::ptx::cp_async_wait<0>();
        __syncthreads();  // V is there, nobody needs K any more, and p are written
        copy_k(first + T::BN);
        if (masked) {
            set_apart_non_finite<T::BN, T::D, T::THREADS>(
                [&](int key, int col) { return &shared.v[key][col]; },
                [&](int key) {
#pragma unroll
                    for (int i = 0; i < T::ROWS; ++i) {
#pragma unroll
                        for (int c = 0; c < T::COLS; ++c) {
                            const float x = shared.v[key][c / 4 * 32 + lane_col * 4 + c % 4];
                            if (first + key < seen_by(i) && !is_finite(x)) out[i][c] += x;
                        }
                    }
                });
        }
#pragma unroll 2
        for (int key = 0; key < T::BN; key += 4) {
            Pack p[T::ROWS];
#pragma unroll
            for (int i = 0; i < T::ROWS; ++i)
                p[i] = Pack::load(&shared.p[row_of(i)][key]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
                for (int c = 0; c < T::COLS; c += 4) {
                    const Pack v = Pack::load(&shared.v[key + n][c * 8 + lane_col * 4]);
#pragma unroll
                    for (int i = 0; i < T::ROWS; ++i) {
#pragma unroll
                        for (int m = 0; m < 4; ++m)
                            out[i][c + m] += p[i].value[n] * v.value[m];
                    }
                }
            }
        }
        __syncthreads();  // nobody needs V any more
        copy_v(first + T::BN);
    }

#pragma unroll
    for (int i = 0; i < T::ROWS; ++i) {
        const float inverse = softmax.inverse_of_sum(i);
        const int row = tile.first + row_of(i);
        if (row >= tile.length_q) continue;
        float* const to = tile.out + static_cast<std::size_t>(row) * a.out.strides().row;
#pragma unroll
        for (int c = 0; c < T::COLS; c += 4) {
            Pack pack;
#pragma unroll
            for (int m = 0; m < 4; ++m)
                pack.value[m] = out[i][c + m] * inverse;
            write_pack<ALIGNED>(to, c * 8 + lane_col * 4, dim, pack);
        }
    }
}

template <int D>
using TileFor = std::conditional_t<D <= 64, Tile<D, 8, 4, 2>, Tile<D, 4, 4, 1>>;

// Of the largest tile, which also rows take that are not aligned.
std::string constraint(const Shape&) {
    constexpr std::size_t kNeeded = std::max(sizeof(Shared<TileFor<64>>), sizeof(Shared<TileFor<kMaxDim>>));
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (kNeeded <= static_cast<std::size_t>(most)) return "";
    return "needs " + std::to_string(kNeeded) + " bytes of shared memory in a block; this GPU allows " +
           std::to_string(most);
}

// Where rows are not aligned, one size must do for all.
void launch(const Attention<float>& attention, cudaStream_t stream) {
    if (const std::string reason = constraint({}); !reason.empty())
        throw std::invalid_argument("fused attention: register_tiles " + reason);
    if (!check_arguments(attention)) return;
    const auto run = [&](auto dim, auto aligned) {
        using T = TileFor<dim()>;
        launch_tiles<T::BM>(attention_register_tiles<T, aligned()>, T::THREADS, sizeof(Shared<T>), attention,
                            stream);
    };
    if (!rows_are_aligned(attention)) {
        run(std::integral_constant<int, kMaxDim>(), std::false_type());
    } else {
        with_dim<64, 128>(attention.q.extents().dim, [&](auto dim) { run(dim, std::true_type()); });
    }
}

}  // namespace

FusedAttention<float> register_tiles() {
    return {.name = "register_tiles",
            .idea = "tiles of keys in shared memory, 8 x 8 scores in a thread's registers",
            .launcher = launch,
            .work = work_in_fp32,
            .constraint = constraint};
}

}  // namespace day25::fused
