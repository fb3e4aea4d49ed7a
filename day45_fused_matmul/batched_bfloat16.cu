// Many products of BF16 matrices at once, on tensor cores (batched_bfloat16.hpp).                     PMPP chapters 5 and 6
//
// As in fused_matmul.cu, a block goes from tile to tile and its copies do not stop between them. But a warp multiplies, not a thread: 16 x 16
// elements of A by 16 x 8 of B in one instruction, mma.sync.
//
//   version            idea                                                       limited by
//   tile_each          a block for each tile, mma.sync                            tiles that end together; filling the pipeline
//   pipelined          a block goes from tile to tile, its copies ahead of it     with a short K, writing C; mma.sync
//
// All four layouts are one kernel. A tile lies in shared memory as it lies in global memory, in chunks of eight neighbours, and is never
// turned: where its rows run across K, ldmatrix turns the chunks on their way to the registers.
//
//   ./course run day45 --size 8x256x256x64
#include <algorithm>
#include <array>
#include <string>

#include "batched.cuh"
#include "batched_bfloat16.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/tensor_core_support.hpp"
#include "common/tile/pair_output.cuh"
#include "common/tile/tile_copies.cuh"
#include "common/tile/tile_order.cuh"

namespace day45 {
namespace {

using course::DeviceMatrix;
using Bfloat16Factors = course::FactorsOf<__nv_bfloat16>;

// A warp has WM x WN results of a block's BM x BN. With 64 x 64 of them it loads 16 fragments for 32 products of fragments. Of such blocks two
// fit on a multiprocessor: one multiplies while the other writes.
struct WarpTile {
    using T = __nv_bfloat16;
    static constexpr int BM = 128, BN = 128, BK = 64, WM = 64, WN = 64, STAGES = 3, BLOCKS = 2;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
    static constexpr bool SWIZZLED = true;
};

// Which rows run along K, in memory: those of A as it lies, and of B transposed.
template <bool A_ALONG_, bool B_ALONG_>
struct Layout : WarpTile {
    static constexpr bool A_ALONG = A_ALONG_, B_ALONG = B_ALONG_;
};

// EXTENT rows or columns of a factor, and what is multiplied of them at a time: BK along K.
template <int EXTENT, bool ALONG>
using FactorTile = course::SharedTile<WarpTile, ALONG ? EXTENT : WarpTile::BK, ALONG ? WarpTile::BK : EXTENT>;

template <class L>
struct TensorCoreStage {
    FactorTile<L::BM, L::A_ALONG> a;
    FactorTile<L::BN, L::B_ALONG> b;
};

// --- Copies ----------------------------------------------------------------------------------------------------------

// A thread's share of the tiles of one factor that follow each other along K. What lies outside is 0.
template <int EXTENT, bool ALONG>
class FactorCopies {
    using Tile = FactorTile<EXTENT, ALONG>;

  public:
    // The tiles from row or column `first` of op() on.
    __device__ FactorCopies(const DeviceMatrix<const __nv_bfloat16>& matrix, std::size_t first)
        : copies_(matrix, ALONG ? static_cast<int>(first) : 0, ALONG ? 0 : static_cast<int>(first)),
          aligned_(course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 8 == 0) {}

    __device__ void next_to(Tile& tile) {
        if (aligned_) {
            copies_.template to<true>(tile);
        } else {
            copies_.template to<false>(tile);
        }
        if constexpr (ALONG) {
            copies_.next_columns();
        } else {
            copies_.next_rows();
        }
    }

  private:
    course::TileCopies<WarpTile, ALONG ? EXTENT : WarpTile::BK, ALONG ? WarpTile::BK : EXTENT> copies_;
    // May chunks of 16 bytes be copied? Asked of each matrix: of an array of pointers nobody else knows.
    bool aligned_;
};

// Both factors' tiles, for the tiles of C that this block has, one after the other.
template <class L>
class CopiesAhead {
  public:
    __device__ CopiesAhead(const Bfloat16Factors& factors, const course::EveryTile<WarpTile>& walk)
        : factors_(factors),
          walk_(walk),
          steps_(static_cast<int>(course::ceil_div<std::size_t>(factors.k(), L::BK))),
          tile_(walk.first()),
          a_(a_of(walk.at(tile_))),
          b_(b_of(walk.at(tile_))) {}

    // Steps of BK that a tile takes.
    __device__ int steps() const { return steps_; }

    // Starts to copy the next step into `stage`, and closes its group, which is empty behind the last tile.
    __device__ void start(TensorCoreStage<L>& stage) {
        if (walk_.has(tile_)) {
            a_.next_to(stage.a);
            b_.next_to(stage.b);
            if (++step_ == steps_) next_tile();
        }
        course::ptx::cp_async_commit();
    }

  private:
    using A = FactorCopies<L::BM, L::A_ALONG>;
    using B = FactorCopies<L::BN, L::B_ALONG>;

    __device__ A a_of(const course::Tile& tile) const { return {factors_.a[tile.product], tile.row}; }
    __device__ B b_of(const course::Tile& tile) const { return {factors_.b[tile.product], tile.col}; }

    __device__ void next_tile() {
        step_ = 0;
        tile_ = walk_.next(tile_);
        if (!walk_.has(tile_)) return;
        const course::Tile tile = walk_.at(tile_);
        a_ = a_of(tile);
        b_ = b_of(tile);
    }

    const Bfloat16Factors& factors_;
    const course::EveryTile<WarpTile>& walk_;
    int steps_;
    int step_ = 0;
    unsigned tile_;
    A a_;
    B b_;
};

// --- Products --------------------------------------------------------------------------------------------------------

// 16 rows or columns of a factor, 16 of K: four matrices of 8 x 8, as mma.sync wants them: the first eight and the second, both from k on, and
// both from k + 8 on. Each lane names one of their 32 chunks. Where these run across K, they arrive transposed.
template <int EXTENT, bool ALONG>
__device__ void load_fragment(unsigned (&four)[4], FactorTile<EXTENT, ALONG>& tile, int first, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (ALONG) {
        course::ptx::ldmatrix_x4(four, tile.chunk(first + lane % 16, k / 8 + lane / 16));
    } else {
        course::ptx::ldmatrix_x4_trans(four,
                                       tile.chunk(k + lane / 16 * 8 + lane % 8, first / 8 + lane / 8 % 2));
    }
}

// The sums of a warp: lane 4 g + t has columns 2 t and 2 t + 1 of eight, in rows g and g + 8 of sixteen.
template <class L>
class WarpSums {
    static constexpr int ROWS = L::WM / 16, COLUMNS = L::WN / 8;

  public:
    // Adds the products of one stage.
    __device__ void multiply(TensorCoreStage<L>& stage) {
#pragma unroll
        for (int k = 0; k < L::BK; k += 16) {
            unsigned a[ROWS][4];
            unsigned b[COLUMNS][2];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                load_fragment<L::BM, L::A_ALONG>(a[i], stage.a, warp_row() + i * 16, k);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 2) {
                unsigned four[4];
                load_fragment<L::BN, L::B_ALONG>(four, stage.b, warp_column() + j * 8, k);
                b[j][0] = four[0];
                b[j][1] = four[2];
                b[j + 1][0] = four[1];
                b[j + 1][1] = four[3];
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    course::ptx::mma_m16n8k16_bf16(sums_[i][j], a[i], b[j]);
        }
    }

    // The block's results begin at (row, column) of C.
    __device__ void write(const course::OutputOf<float>& out, std::size_t row, std::size_t column) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int first_row = static_cast<int>(row) + warp_row() + lane / 4;
        const int first_column = static_cast<int>(column) + warp_column() + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    store_pair(out, first_row + i * 16 + lower * 8, first_column + j * 8,
                               sums_[i][j][lower * 2], sums_[i][j][lower * 2 + 1]);
    }

  private:
    static __device__ int warp_row() {
        return static_cast<int>(threadIdx.x) / 32 / L::WARPS_N * L::WM;
    }
    static __device__ int warp_column() {
        return static_cast<int>(threadIdx.x) / 32 % L::WARPS_N * L::WN;
    }

    float sums_[ROWS][COLUMNS][4] = {};
};

// --- Kernel ----------------------------------------------------------------------------------------------------------

// Idea: two stages are on their way while one is multiplied, across the border between tiles, too.
// Cost removed: a multiply-add as an instruction of its own; waiting for the first stage of each tile.
// Still limits it: with a short K, C on its way to memory; with a long one, mma.sync, whose operands come through registers.
template <class L>
__global__ __launch_bounds__(L::THREADS, L::BLOCKS) void multiply_on_tensor_cores(
    const __grid_constant__ Bfloat16Matmul matmul,
    const __grid_constant__ course::EveryTile<WarpTile> tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<TensorCoreStage<L>*>(memory);
    CopiesAhead<L> copies(matmul.factors, tiles);
    for (int stage = 0; stage < L::STAGES - 1; ++stage)
        copies.start(stages[stage]);
    int now = 0;
    int free = L::STAGES - 1;
    for (unsigned tile = tiles.first(); tiles.has(tile); tile = tiles.next(tile)) {
        WarpSums<L> sums;
        for (int step = 0; step < copies.steps(); ++step) {
            course::ptx::cp_async_wait<L::STAGES - 2>();
            __syncthreads();  // the stage is there, and nobody needs the one before it any more
            copies.start(stages[free]);
            sums.multiply(stages[now]);
            free = now;
            now = now + 1 == L::STAGES ? 0 : now + 1;
        }
        const course::Tile at = tiles.at(tile);
        sums.write(course::make_output(matmul.c[at.product], matmul.alpha, matmul.beta), at.row, at.col);
    }
    course::ptx::cp_async_wait<0>();
}

// --- Launchers -------------------------------------------------------------------------------------------------------

constexpr std::size_t kShared =
    (WarpTile::BM + WarpTile::BN) * WarpTile::BK * sizeof(WarpTile::T) * WarpTile::STAGES;

using Kernel = void (*)(Bfloat16Matmul, course::EveryTile<WarpTile>);

Kernel kernel_for(course::Op op_a, course::Op op_b) {
    const bool a_along = op_a == course::Op::kNone;
    const bool b_along = op_b == course::Op::kTranspose;
    if (a_along)
        return b_along ? multiply_on_tensor_cores<Layout<true, true>>
                       : multiply_on_tensor_cores<Layout<true, false>>;
    return b_along ? multiply_on_tensor_cores<Layout<false, true>>
                   : multiply_on_tensor_cores<Layout<false, false>>;
}

std::string needs_tensor_cores(const Shape&) {
    return course::why_no_tensor_cores(kernel_for(course::Op::kNone, course::Op::kNone), kShared);
}

template <bool PERSISTENT>
void launch_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const auto& factors = matmul.factors;
    constexpr std::size_t kMost = (std::size_t{1} << 31) - 1024;  // counted in int, with room for a tile
    course::require(std::max({factors.m(), factors.n(), factors.k()}) <= kMost,
                    "batched matmul: m, n and k are ", factors.m(), " x ", factors.n(), " x ", factors.k(),
                    "; expected each at most ", kMost, " on tensor cores");
    const Kernel kernel = kernel_for(factors.op_a, factors.op_b);
    course::allow_shared_bytes(kernel, kShared);
    const auto walk = course::every_tile<WarpTile>(factors.m(), factors.n(), factors.count());
    const unsigned resident = course::resident_blocks(kernel, WarpTile::THREADS, kShared);
    const unsigned blocks = PERSISTENT ? std::min(walk.all, resident) : walk.all;
    course::launch(kernel, {blocks, WarpTile::THREADS, kShared, stream}, matmul, walk);
}

}  // namespace

std::span<const BatchedBfloat16> bfloat16_variants() {
    static const std::array list = {
        BatchedBfloat16{.name = "tile_each",
                        .idea = "a block for each tile, mma.sync",
                        .launcher = launch_tiles<false>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores},
        BatchedBfloat16{.name = "pipelined",
                        .idea = "a block goes from tile to tile, and its copies do not wait for it",
                        .launcher = launch_tiles<true>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores},
    };
    return list;
}

}  // namespace day45
