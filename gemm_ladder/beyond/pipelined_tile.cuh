// The multi-stage main loop (step 12; also of 13 and 14): STAGES tiles of A and B in shared memory, of which one is multiplied while the
// others are on their way.
//
//     stage        0        1        2            B goes from global to shared memory by cp.async, past the registers.
//     tile k       now      ready    on its way   A changes its order on the way: loaded float4 by float4 along K, it is stored
//     tile k + 1   free     now      ready        column by column, so it passes through a few registers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "../block_tile.cuh"
#include "../tile.cuh"
#include "../warp_tile.cuh"
#include "common/ptx.cuh"

namespace gemm {

// One stage: a tile of A, stored transposed, and one of B. Four more floats in a row of A put the columns that a warp stores at the
// same time into different banks.
template <class T>
struct alignas(16) Stage {
    float a[T::BK][T::BM + 4];
    float b[T::BK][T::BN];
};

// The block's part of A, tile by tile along K.
template <class T, int VEC>
class SourceA {
    static constexpr int QUADS_IN_ROW = T::BK / 4;
    static constexpr int ROWS = T::THREADS / QUADS_IN_ROW;  // loaded at once
    static constexpr int PASSES = T::BM / ROWS;
    static_assert(T::BK % 4 == 0, "SourceA: a row of a tile of A is a whole number of float4");
    static_assert(PASSES >= 1 && T::BM % ROWS == 0 && T::THREADS % QUADS_IN_ROW == 0,
                  "SourceA: every thread loads the same number of float4");

  public:
    struct Held {
        course::Pack<float, 4> quads[PASSES];
    };

    // Instead of rows beyond the last one stands the last one again: what is computed from it is not written.
    __device__ SourceA(const Sgemm& gemm, std::size_t first_row, std::size_t k) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const std::size_t row = min(first_row + row_of(pass), gemm.m() - 1);
            quads_[pass] = gemm.a.data() + row * gemm.a.leading_dimension() + k + col();
        }
    }

    // Starts to load the next tile. WHOLE: it lies within A. Otherwise the first `depth` columns do; instead of the others stand zeros.
    template <bool WHOLE>
    __device__ Held load(int depth) {
        Held held;
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            if (WHOLE && VEC == 4) {
                held.quads[pass] = course::Pack<float, 4>::load(quads_[pass]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    held.quads[pass].value[j] = WHOLE || col() + j < depth ? quads_[pass][j] : 0.0f;
            }
            quads_[pass] += T::BK;
        }
        return held;
    }

    static __device__ void store(const Held& held, Stage<T>& stage) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                stage.a[col() + j][row_of(pass)] = held.quads[pass].value[j];
        }
    }

  private:
    static __device__ int row_of(int pass) {
        return static_cast<int>(threadIdx.x) / QUADS_IN_ROW + pass * ROWS;
    }
    static __device__ int col() {
        return static_cast<int>(threadIdx.x) % QUADS_IN_ROW * 4;
    }

    const float* quads_[PASSES];
};

// The block's part of B, tile by tile along K.
template <class T, int VEC>
class SourceB {
    static constexpr int QUADS_IN_ROW = T::BN / 4;
    static constexpr int ROWS = T::THREADS / QUADS_IN_ROW;
    static constexpr int PASSES = T::BK / ROWS;
    static_assert(T::BN % 4 == 0, "SourceB: a row of a tile of B is a whole number of float4");
    static_assert(ROWS >= 1 && PASSES >= 1 && T::BK % ROWS == 0 && T::THREADS % QUADS_IN_ROW == 0,
                  "SourceB: every thread copies the same number of float4");

  public:
    __device__ SourceB(const Sgemm& gemm, std::size_t k, std::size_t first_col)
        : quad_(gemm.b.data() + (k + row()) * gemm.b.leading_dimension() + first_col + col()),
          leading_dimension_(gemm.b.leading_dimension()),
          inside_(static_cast<unsigned>(min(gemm.n() - min(gemm.n(), first_col + col()), std::size_t{4}))) {}

    // Starts to copy the next tile into `stage`; instead of columns beyond the last one stand zeros. WHOLE: all rows lie within B.
    // Otherwise the first `depth` do; instead of the others stand zeros.
    template <bool WHOLE>
    __device__ void copy(int depth, Stage<T>& stage) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            float* const to = &stage.b[row() + pass * ROWS][col()];
            const float* const from = quad_ + pass * ROWS * leading_dimension_;
            const unsigned count = WHOLE || row() + pass * ROWS < depth ? inside_ : 0;
            if (VEC == 4) {
                course::ptx::cp_async_16(to, from, count * sizeof(float));
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    course::ptx::cp_async_4(to + j, from + j, j < count);
            }
        }
        quad_ += T::BK * leading_dimension_;
    }

  private:
    static __device__ int row() {
        return static_cast<int>(threadIdx.x) / QUADS_IN_ROW;
    }
    static __device__ int col() {
        return static_cast<int>(threadIdx.x) % QUADS_IN_ROW * 4;
    }

    const float* quad_;
    std::size_t leading_dimension_;
    unsigned inside_;  // how many of the four columns lie within B
};

template <class T>
struct Fragments {
    float a[T::TM];
    float b[T::TN];

    __device__ void load(const Stage<T>& stage, int k, const Place& place) {
        load_fragment<T::LANES_N>(&stage.b[k][place.col], 0,
                                  b);  // first: multiply_fragments() begins with all of it
        load_fragment<T::LANES_M>(&stage.a[k][place.row], 0, a);
    }
};

// sums += A B, for the BM x BN tile of C at `origin` and the columns [begin, end) of A. All threads of the block call it;
// `stages` are STAGES of them.
template <class T, int VEC>
__device__ __forceinline__ void multiply_pipelined(const Sgemm& gemm, const Origin& origin, std::size_t begin,
                                                   std::size_t end, Stage<T>* stages,
                                                   float (&sums)[T::TM][T::TN]) {
    constexpr int AHEAD = T::STAGES - 1;  // tiles on their way or ready
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    const auto tiles = static_cast<int>(course::ceil_div<std::size_t>(end - begin, T::BK));
    const auto last_depth = static_cast<int>(end - begin - static_cast<std::size_t>(tiles - 1) * T::BK);
    const auto depth_of = [&](int tile) { return tile + 1 < tiles ? T::BK : last_depth; };
    SourceA<T, VEC> source_a(gemm, origin.row, begin);
    SourceB<T, VEC> source_b(gemm, begin, origin.col);

    using Held = typename SourceA<T, VEC>::Held;
    Held first[AHEAD];
    Held held{};
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s < tiles) {
            first[s] = source_a.template load<false>(depth_of(s));
            source_b.template copy<false>(depth_of(s), stages[s]);
        }
        course::ptx::cp_async_commit();
    }
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s < tiles) source_a.store(first[s], stages[s]);
    }
    if (AHEAD < tiles) held = source_a.template load<false>(depth_of(AHEAD));
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    Fragments<T> fragments[2];
    fragments[0].load(stages[0], 0, place);
    int now = 0;
    int free = AHEAD;
    // Multiplies the tile in stages[now], while the tile that is AHEAD of it comes into stages[free], and one more of A into registers.
    const auto multiply_tile = [&](auto copy_b, auto store_and_load_a) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == 0) {
                copy_b();
                course::ptx::cp_async_commit();
            }
            if (k == T::BK - 1) {
                store_and_load_a();
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete, and nobody needs this one any more
                now = now + 1 == T::STAGES ? 0 : now + 1;
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            fragments[(k + 1) % 2].load(stages[now], (k + 1) % T::BK, place);
            multiply_fragments(fragments[k % 2].a, fragments[k % 2].b, sums);
        }
    };
    int tile = 0;
#pragma unroll 1
    for (; tile + AHEAD + 2 < tiles; ++tile) {
        multiply_tile([&] { source_b.template copy<true>(T::BK, stages[free]); },
                      [&] {
                          source_a.store(held, stages[free]);
                          held = source_a.template load<true>(T::BK);
                      });
    }
#pragma unroll 1
    for (; tile < tiles; ++tile) {  // the last tile may end anywhere, and then there is nothing more to load
        const int next = tile + AHEAD;
        multiply_tile(
            [&] {
                if (next < tiles) source_b.template copy<false>(depth_of(next), stages[free]);
            },
            [&] {
                if (next < tiles) source_a.store(held, stages[free]);
                if (next + 1 < tiles) held = source_a.template load<false>(depth_of(next + 1));
            });
    }
    __syncthreads();  // nobody reads ahead any more
}

// Four neighbours of a row of a thread's results, the way they are stored: the second one first.
//
// Values that are stored by one instruction are in neighbouring registers, the first in an even one. So sums[i][j] is an odd register for
// even j; b[j], which a float4 load fetched, is an even one. Even and odd registers are two banks: the multiply-add reads both at the same
// time. In their natural order they would be in the same bank, one after the other.
template <class T>
__device__ course::Pack<float, 4> swapped(const float (&sums)[T::TM][T::TN], int i, int j) {
    return {{sums[i][j + 1], sums[i][j], sums[i][j + 3], sums[i][j + 2]}};
}

// Writes the block's results to the tile of C at `origin`: row by row of each thread, through the warp's part of `shared`, so that
// a warp writes whole rows of its tile.
template <class T, int VEC>
__device__ void write_tile(const Sgemm& gemm, const Origin& origin, const float (&sums)[T::TM][T::TN],
                           float* shared) {
    constexpr int QUADS_IN_ROW = T::WN / 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Place warp = place_of_warp<T>(static_cast<int>(threadIdx.x) / 32);
    float* const rows = shared + static_cast<int>(threadIdx.x) / 32 * T::LANES_M * T::WN;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4)
            swapped<T>(sums, i, j)
                .store(rows + lane / T::LANES_N * T::WN + place_of<T::LANES_N>(lane % T::LANES_N, j));
        __syncwarp();
#pragma unroll
        for (int quad = lane; quad < T::LANES_M * QUADS_IN_ROW; quad += 32) {
            const auto four = course::Pack<float, 4>::load(rows + quad * 4);
            const float in_order[] = {four.value[1], four.value[0], four.value[3], four.value[2]};
            write_row_of_packs<VEC, 1>(gemm,
                                       origin.row + warp.row + place_of<T::LANES_M>(quad / QUADS_IN_ROW, i),
                                       origin.col + warp.col + quad % QUADS_IN_ROW * 4, in_order);
        }
        __syncwarp();
    }
}

}  // namespace gemm
