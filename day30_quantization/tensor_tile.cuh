// A tile of a product on tensor cores: A rows and W rows, both along K, come to shared memory by asynchronous copies, several stages
// of them, and from there as fragments to registers. K is counted in bytes: 32 bytes are a step of mma.m16n8k32 for int8 and of
// mma.m16n8k16 for half alike, and fragments of both lie the same way.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day30 {

// BM x BN results of a block, WM x WN of a warp; STAGES tiles of K in shared memory at a time.
template <int BM_, int BN_, int WM_, int WN_, int STAGES_>
struct TileShape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr int BK = 128;    // bytes of K in a stage: a row is one line of all 32 banks
    static constexpr int STEP = 32;   // bytes of K for one mma
    static constexpr int CHUNK = 16;  // bytes of an asynchronous copy, and of a row of ldmatrix
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * course::kWarpSize;
    static constexpr int MMA_M = WM / 16, MMA_N = WN / 8;  // instructions for a warp's tile
    static constexpr std::size_t SHARED = std::size_t{STAGES} * (BM + BN) * BK;
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0);
};

// Rows of a matrix from a tile's first one on: `rows` of them are there, `pitch` bytes apart, each `bytes` long.
struct TileRows {
    const std::byte* first;
    std::size_t pitch;
    int rows;
    int bytes;
};

template <class T>
__device__ TileRows rows_from(const T* data, std::size_t leading_dimension, std::size_t rows,
                              std::size_t cols, std::size_t begin) {
    return {reinterpret_cast<const std::byte*>(data + begin * leading_dimension),
            leading_dimension * sizeof(T), static_cast<int>(min(rows - begin, std::size_t{1} << 30)),
            static_cast<int>(cols * sizeof(T))};
}

// Chunk `chunk` of row `row` of a tile. The eight rows that one ldmatrix reads at the same chunk would all begin in the same bank: the
// chunks of each row change places by an XOR with the row's number.
template <class T>
__device__ std::byte* swizzled(std::byte* tile, int row, int chunk) {
    constexpr int CHUNKS = T::BK / T::CHUNK;
    static_assert((CHUNKS & (CHUNKS - 1)) == 0, "an XOR stays within a power of two");
    return tile + row * T::BK + (chunk ^ (row & (CHUNKS - 1))) * T::CHUNK;
}

// One thread's share of copying a tile's ROWS rows, stage after stage: a chunk of every ROWS_AT_ONCE-th row.
template <class T, int ROWS>
class Copies {
    static constexpr int CHUNKS = T::BK / T::CHUNK;
    static constexpr int ROWS_AT_ONCE = T::THREADS / CHUNKS;

  public:
    __device__ explicit Copies(const TileRows& from)
        : row_(static_cast<int>(threadIdx.x) / CHUNKS),
          chunk_(static_cast<int>(threadIdx.x) % CHUNKS),
          source_(from.first + static_cast<std::size_t>(row_) * from.pitch + chunk_ * T::CHUNK),
          step_(from.pitch * ROWS_AT_ONCE),
          rows_(from.rows),
          left_(from.bytes - chunk_ * T::CHUNK) {}

    // Issues part PART of PARTS of the copies for a stage. What lies outside the matrix becomes 0.
    template <int PARTS>
    __device__ void issue(std::byte* tile, int part) const {
        constexpr int COUNT = ROWS / ROWS_AT_ONCE / PARTS;
        static_assert(COUNT * PARTS * ROWS_AT_ONCE == ROWS, "every part copies whole groups of rows");
        const int valid = max(0, min(left_, T::CHUNK));
#pragma unroll
        for (int i = part * COUNT; i < (part + 1) * COUNT; ++i) {
            const int row = row_ + i * ROWS_AT_ONCE;
            course::ptx::cp_async_16(swizzled<T>(tile, row, chunk_), source_ + i * step_,
                                     row < rows_ ? static_cast<unsigned>(valid) : 0u);
        }
    }

    __device__ void next_stage() {
        source_ += T::BK;
        left_ -= T::BK;
    }

  private:
    int row_;
    int chunk_;
    const std::byte* source_;
    std::size_t step_;
    int rows_;
    int left_;
};

__device__ inline void multiply_add(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    course::ptx::mma_m16n8k32_s8(d, a, b);
}
__device__ inline void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    course::ptx::mma_m16n8k16_f16(d, a, b);
}

// A warp's part of the sums, in the registers of its lanes: int for products of int8, float for those of half.
template <class T, class Sum>
using Sums = Sum[T::MMA_M][T::MMA_N][4];

// What a warp multiplies in one step: its rows of A and of W, 32 bytes of each.
template <class T>
struct Fragments {
    unsigned a[T::MMA_M][4];
    unsigned w[T::MMA_N][2];

    __device__ void load(std::byte* a_tile, std::byte* w_tile, int step) {
        const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
        const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
        // Lane l gives the address of row l % 8 of the 8 x 16 byte matrix l / 8. A: rows 0..7, 8..15, then both 16 bytes further.
        const int a_row = warp / T::WARPS_N * T::WM + lane % 16;
#pragma unroll
        for (int i = 0; i < T::MMA_M; ++i)
            course::ptx::ldmatrix_x4(a[i], swizzled<T>(a_tile, a_row + i * 16, 2 * step + lane / 16));
        // W: rows 0..7, the same 16 bytes further, then rows 8..15 in the same way.
        const int w_row = warp % T::WARPS_N * T::WN + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int j = 0; j < T::MMA_N; j += 2) {
            unsigned two[4];
            course::ptx::ldmatrix_x4(two, swizzled<T>(w_tile, w_row + j * 8, 2 * step + lane / 8 % 2));
            w[j][0] = two[0];
            w[j][1] = two[1];
            w[j + 1][0] = two[2];
            w[j + 1][1] = two[3];
        }
    }

    template <class Sum>
    __device__ void multiply(Sums<T, Sum>& sums) const {
#pragma unroll
        for (int i = 0; i < T::MMA_M; ++i)
#pragma unroll
            for (int j = 0; j < T::MMA_N; ++j)
                multiply_add(sums[i][j], a[i], w[j]);
    }
};

// Adds A W^T of a block's tile to the sums of its warps. `shared` has T::SHARED bytes, free again when this returns.
//
// While tensor cores work on one step, the next step's fragments are on their way, and a quarter of the copies for a later stage is
// issued. In the last step of a stage all meet: the next stage is there for all, and all have read this one.
template <class T, class Sum>
__device__ void multiply_tile(std::byte* shared, const TileRows& a, const TileRows& w, Sums<T, Sum>& sums) {
    constexpr int STEPS = T::BK / T::STEP;
    const int stages = (a.bytes + T::BK - 1) / T::BK;
    if (stages == 0) return;
    const auto a_tile = [&](int stage) { return shared + stage * (T::BM + T::BN) * T::BK; };
    const auto w_tile = [&](int stage) { return a_tile(stage) + T::BM * T::BK; };
    Copies<T, T::BM> a_copies(a);
    Copies<T, T::BN> w_copies(w);
    const auto copy = [&](int stage, int part) {
        a_copies.template issue<STEPS>(a_tile(stage), part);
        w_copies.template issue<STEPS>(w_tile(stage), part);
        if (part < STEPS - 1) return;
        course::ptx::cp_async_commit();
        a_copies.next_stage();
        w_copies.next_stage();
    };
    for (int stage = 0; stage < T::STAGES - 1; ++stage)
        for (int part = 0; part < STEPS; ++part)
            copy(stage, part);
    course::ptx::cp_async_wait<T::STAGES - 2>();
    __syncthreads();

    Fragments<T> fragments[2];
    fragments[0].load(a_tile(0), w_tile(0), 0);
    int stage = 0;
    for (int i = 0; i < stages; ++i) {
        const int free_stage = stage == 0 ? T::STAGES - 1 : stage - 1;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            copy(free_stage, step);  // beyond the last stage: of nothing
            if (step == STEPS - 1) {
                stage = stage == T::STAGES - 1 ? 0 : stage + 1;
                course::ptx::cp_async_wait<T::STAGES - 2>();
                __syncthreads();
            }
            fragments[(step + 1) % 2].load(a_tile(stage), w_tile(stage), (step + 1) % STEPS);
            fragments[step % 2].multiply(sums);
        }
    }
    course::ptx::cp_async_wait<0>();
    __syncthreads();
}

// Calls visit(i, j, p, row, column) for each two neighbouring sums of a thread: sums[i][j][p] is at (row, column) of the block's tile,
// and sums[i][j][p + 1] beside it.
template <class T, class Visit>
__device__ void for_each_pair(const Visit& visit) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int row = warp / T::WARPS_N * T::WM + lane / 4;
    const int column = warp % T::WARPS_N * T::WN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < T::MMA_M; ++i)
#pragma unroll
        for (int j = 0; j < T::MMA_N; ++j)
#pragma unroll
            for (int pair = 0; pair < 4; pair += 2)
                visit(i, j, pair, row + i * 16 + pair * 4, column + j * 8);
}

// Tiles in an order in which blocks that run at the same time share rows of A and of W, which then come from the L2 cache: bands of
// BAND tiles high are worked off column by column.
struct TilePlace {
    std::size_t row;
    std::size_t column;
};
template <class T, unsigned BAND = 8>
__device__ TilePlace tile_place(unsigned tiles_m, unsigned tiles_n) {
    const unsigned band = blockIdx.x / (BAND * tiles_n);
    const unsigned height = min(BAND, tiles_m - band * BAND);
    const unsigned in_band = blockIdx.x % (BAND * tiles_n);
    return {std::size_t{band * BAND + in_band % height} * T::BM, std::size_t{in_band / height} * T::BN};
}

}  // namespace day30
