// The multi-stage main loop (step 12; also of 13 and 14): STAGES tiles of A and B in shared memory, one of which is multiplied while
// others are on their way.
//
//     stage              0           1           2           3
//     tile t             multiplied  ready       on its way  free, tile t + 3 sets out
//     tile t + 1         free        multiplied  ready       on its way
//
// A changes its order on the way: its tile is stored transposed. cp.async moves bytes without looking at them, but each copy
// of 4 bytes has a destination of its own, so A goes float by float and B float4 by float4.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/ptx.cuh"
#include "common/tile/fragments.cuh"
#include "thread_tile.cuh"
#include "tile.cuh"

namespace gemm {

using course::Fragments;
using course::multiply_and_read_ahead;

// One stage: a tile of A, transposed, and one of B. A warp copies 8 columns of 4 rows of A at a time; with four floats more in a row of
// the stage, they go to 32 different banks.
template <class T>
struct alignas(16) Stage {
    float a[T::BK][T::BM + 4];
    float b[T::BK][T::BN];
};

// The block's part of A, tile by tile along K.
template <class T>
class SourceA {
    static constexpr int COLS = 8;
    static constexpr int ROWS = T::THREADS / COLS;  // copied at a time
    static_assert(T::BK % COLS == 0, "SourceA: BK must be a multiple of 8");
    static_assert(T::BM % ROWS == 0, "SourceA: every thread must copy the same number of floats");

  public:
    __device__ SourceA(const Sgemm& gemm, std::size_t first_row, std::size_t k)
        : from_(gemm.a.data() + (first_row + row()) * gemm.a.leading_dimension() + k + col()),
          leading_dimension_(gemm.a.leading_dimension()),
          rows_(static_cast<int>(min(gemm.m() - first_row, std::size_t{T::BM}))) {}

    // Starts to copy the next tile. WHOLE: all its columns lie within A; otherwise the first `depth` do. What lies outside is 0.
    template <bool WHOLE>
    __device__ void copy(int depth, Stage<T>& stage) {
#pragma unroll
        for (int k = 0; k < T::BK; k += COLS) {
#pragma unroll
            for (int r = 0; r < T::BM; r += ROWS) {
                course::ptx::cp_async_4(&stage.a[col() + k][row() + r], from_ + r * leading_dimension_ + k,
                                        row() + r < rows_ && (WHOLE || col() + k < depth));
            }
        }
        from_ += T::BK;
    }

  private:
    static __device__ int row() {
        return static_cast<int>(threadIdx.x) / COLS;
    }
    static __device__ int col() {
        return static_cast<int>(threadIdx.x) % COLS;
    }

    const float* from_;
    std::size_t leading_dimension_;
    int rows_;  // of the tile that lie within A
};

// The block's part of B, tile by tile along K. VEC = 4: rows of B are aligned, and whole numbers of float4;
// 1: they may begin and end anywhere.
template <class T, int VEC>
class SourceB {
    static constexpr int QUADS = T::BN / 4;          // in a row
    static constexpr int ROWS = T::THREADS / QUADS;  // copied at a time
    static_assert(T::THREADS % QUADS == 0 && T::BK % ROWS == 0,
                  "SourceB: every thread must copy the same number of float4");

  public:
    __device__ SourceB(const Sgemm& gemm, std::size_t k, std::size_t first_col)
        : from_(gemm.b.data() + (k + row()) * gemm.b.leading_dimension() + first_col + col()),
          leading_dimension_(gemm.b.leading_dimension()),
          cols_(static_cast<unsigned>(min(gemm.n() - min(gemm.n(), first_col + col()), std::size_t{4}))) {}

    // As for A. WHOLE: all rows of the tile lie within B; otherwise the first `depth` do.
    template <bool WHOLE>
    __device__ void copy(int depth, Stage<T>& stage) {
#pragma unroll
        for (int r = 0; r < T::BK; r += ROWS) {
            float* const to = &stage.b[row() + r][col()];
            const float* const from = from_ + r * leading_dimension_;
            const unsigned count = WHOLE || row() + r < depth ? cols_ : 0;
            if constexpr (VEC == 4) {
                course::ptx::cp_async_16(to, from, count * sizeof(float));
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    course::ptx::cp_async_4(to + j, from + j, j < count);
            }
        }
        from_ += T::BK * leading_dimension_;
    }

  private:
    static __device__ int row() {
        return static_cast<int>(threadIdx.x) / QUADS;
    }
    static __device__ int col() {
        return static_cast<int>(threadIdx.x) % QUADS * 4;
    }

    const float* from_;
    std::size_t leading_dimension_;
    unsigned cols_;  // of these four that lie within B
};

// The first column of A's tile and the first row of B's, by all threads of the block.
template <class T>
__device__ void clear_first_column(Stage<T>& stage) {
    for (int i = static_cast<int>(threadIdx.x); i < T::BM; i += T::THREADS)
        stage.a[0][i] = 0;
    for (int i = static_cast<int>(threadIdx.x); i < T::BN; i += T::THREADS)
        stage.b[0][i] = 0;
}

// sums += A B, for the BM x BN tile of C at `origin` and the columns [begin, end) of A. All threads of the block call it;
// `stages` are STAGES of them. When it returns, the stages are free.
template <class T, int VEC>
__device__ __forceinline__ void multiply_pipelined(const Sgemm& gemm, const Origin& origin, std::size_t begin,
                                                   std::size_t end, Stage<T>* stages,
                                                   float (&sums)[T::TM][T::TN]) {
    static_assert(T::STAGES >= 2, "multiply_pipelined: one stage to multiply and at least one on its way");
    static_assert(T::BK % 2 == 0,
                  "multiply_pipelined: the fragments of the next tile must fall to the first of the two");
    constexpr int AHEAD = T::STAGES - 1;  // tiles on their way or ready
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    const auto tiles = static_cast<int>(course::ceil_div<std::size_t>(end - begin, T::BK));
    const auto last_depth = static_cast<int>((end - begin + T::BK - 1) % T::BK) + 1;
    const auto depth_of = [&](int tile) { return tile + 1 < tiles ? T::BK : last_depth; };
    SourceA<T> source_a(gemm, origin.row, begin);
    SourceB<T, VEC> source_b(gemm, begin, origin.col);

#pragma unroll
    for (int tile = 0; tile < AHEAD; ++tile) {
        if (tile < tiles) {
            source_a.template copy<false>(depth_of(tile), stages[tile]);
            source_b.template copy<false>(depth_of(tile), stages[tile]);
        }
        course::ptx::cp_async_commit();
    }
    if (tiles < T::STAGES)
        clear_first_column(stages[tiles]);  // what is read ahead, for nothing, after the last tile
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    Fragments<T> fragments[2];
    fragments[0].read(stages[0], 0, place);
    int now = 0;
    int free = AHEAD;
    const auto multiply_tile = [&](auto copy_next) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                copy_next(stages[free]);
                course::ptx::cp_async_commit();
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete, and nobody needs this one any more
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
            multiply_and_read_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[now],
                                       (k + 1) % T::BK, place);
        }
    };
    int tile = 0;
#pragma unroll 1
    for (; tile + AHEAD + 1 < tiles; ++tile) {
        multiply_tile([&](Stage<T>& stage) {
            source_a.template copy<true>(T::BK, stage);
            source_b.template copy<true>(T::BK, stage);
        });
    }
#pragma unroll 1
    for (; tile < tiles; ++tile) {  // the last tile may end anywhere; after it nothing is left to copy
        multiply_tile([&](Stage<T>& stage) {
            if (tile + AHEAD >= tiles) return;
            source_a.template copy<false>(last_depth, stage);
            source_b.template copy<false>(last_depth, stage);
        });
    }
    __syncthreads();  // nobody reads ahead any more
}

// Four neighbours of a row of a thread's results, the way they are stored: the second one first.
//
// Values that one instruction stores are in neighbouring registers, the first in an even one. So sums[i][j] is in an odd register for
// even j, and b[j], which one instruction loaded, in an even one. Even and odd registers are two banks: a multiply-add reads both in
// the same cycle. In their natural order both would be in the same bank, and would be read one after the other.
template <class T>
__device__ course::Pack<float, 4> swapped(const float (&sums)[T::TM][T::TN], int i, int j) {
    return {{sums[i][j + 1], sums[i][j], sums[i][j + 3], sums[i][j + 2]}};
}

// Writes the block's results to the tile of C at `origin`: row by row of each thread, through the warp's part of `shared`, so that
// a warp writes whole rows of its tile.
template <class T, int VEC>
__device__ void write_tile(const Sgemm& gemm, const Origin& origin, const float (&sums)[T::TM][T::TN],
                           float* shared) {
    constexpr int QUADS = T::WN / 4;  // in a row of the warp's tile
    static_assert(T::THREADS / 32 * T::LANES_M * T::WN * sizeof(float) <= sizeof(Stage<T>) * T::STAGES,
                  "write_tile: the stages must have room for a row of each thread");
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const Place place = place_of_warp<T>(warp);
    float* const rows = shared + warp * T::LANES_M * T::WN;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) {
            swapped<T>(sums, i, j)
                .store(rows + lane / T::LANES_N * T::WN + place_of<T::LANES_N>(lane % T::LANES_N, j));
        }
        __syncwarp();
        if constexpr (VEC == 4) {
#pragma unroll
            for (int quad = lane; quad < T::LANES_M * QUADS; quad += 32) {
                const auto four = course::Pack<float, 4>::load(rows + quad * 4);
                const float in_order[] = {four.value[1], four.value[0], four.value[3], four.value[2]};
                write_row_of_packs<VEC, 1>(gemm,
                                           origin.row + place.row + place_of<T::LANES_M>(quad / QUADS, i),
                                           origin.col + place.col + quad % QUADS * 4, in_order);
            }
        } else {
            // Float by float, so that the lanes of a warp write neighbours; the other one of a swapped pair is at the place ^ 1.
#pragma unroll
            for (int n = lane; n < T::LANES_M * T::WN; n += 32) {
                write_element(gemm, origin.row + place.row + place_of<T::LANES_M>(n / T::WN, i),
                              origin.col + place.col + n % T::WN, rows[n ^ 1]);
            }
        }
        __syncwarp();
    }
}

}  // namespace gemm
