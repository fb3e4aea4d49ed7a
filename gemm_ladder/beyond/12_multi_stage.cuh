// Step 12: asynchronous copies, several stages.
//
// Change:     cp.async copies tiles from global to shared memory without passing through registers,
//             into a ring buffer of four stages: while one tile is multiplied, three are in flight.
//             A block has 128 x 256 results: one block of 256 threads per SM instead of two of 128.
//             Sums are stored in swapped order (step 11).
// Why:        tiles in flight no longer occupy registers, and there are three of them instead of
//             one. A tile twice as wide needs 3/256 words from global memory for a multiply-add
//             instead of 4/256. The swapped order puts sums and operands into different banks of
//             the register file.
// Prediction: the main loop stores no tile; beside shared loads and multiply-adds it only issues
//             copies and computes their addresses. Global loads -25 %. Faster than step 10 by what
//             register bank conflicts have cost there.
// Counter:    smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls; so does
//             smsp__inst_executed_op_shared_st.sum.
// Measured:   about 53 TFLOP/s, 1.09 times step 10: 3 % more than cuBLAS.
// Limit:      multiply-adds (counters: FMA 82 % busy, issue slots 87 %).
// Next:       512 tiles on 132 SMs are 3.88 waves, and take as long as 4.
//
// The ring buffer. Tile t is in stage t % 4:
//
//                       stage 0       stage 1       stage 2       stage 3
//     multiply tile 0   tile 0        in flight     in flight     issue tile 3
//     multiply tile 1   issue tile 4  tile 1        in flight     in flight
//     multiply tile 2   in flight     issue tile 5  tile 2        in flight
//
// The dispatcher (step 14) runs these kernels with seven tiles. So the constants of steps 9 to 11
// are members of T here, a course::TileShape: T::BM, T::TM, T::LANES_N... Step 12 itself has
// BM = 128, BN = 256, BK = 8, WM = WN = 64, TM = 16, TN = 8 and four stages (12_multi_stage.cu).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "tile.cuh"

namespace gemm {

// One stage: a tile of A, transposed, and a tile of B.
//
// cp.async moves bytes without changing their order. But each copy of 4 bytes has a destination of
// its own: A is transposed by copying it float by float, while B is copied float4 by float4. One
// copy of a warp has 8 columns and 4 rows of A. Rows of the stage that are four floats longer put
// them into 32 different banks: (BM + 4) k + row.
template <class T>
struct alignas(16) Stage {
    float a[T::BK][T::BM + 4];
    float b[T::BK][T::BN];
};

// This thread's copies of A, tile after tile along K.
template <class T>
class CopiesOfA {
    // Of the tile, the block copies ROWS rows of COLS columns at once.
    static constexpr int COLS = 8;
    static constexpr int ROWS = T::THREADS / COLS;
    static_assert(T::BK % COLS == 0, "CopiesOfA: BK must be a multiple of 8");
    static_assert(T::BM % ROWS == 0, "CopiesOfA: every thread must copy the same number of floats");

  public:
    // The first tile starts at (first_row, k).
    __device__ CopiesOfA(const Sgemm& gemm, std::size_t first_row, std::size_t k)
        : from_(gemm.a.data() + (first_row + row()) * gemm.a.leading_dimension() + k + col()),
          leading_dimension_(gemm.a.leading_dimension()),
          rows_(static_cast<int>(min(gemm.m() - first_row, std::size_t{T::BM}))) {}

    // Issues the copies of the next tile. Its first `depth` columns are in range, or all of them if
    // WHOLE. Out-of-range elements are zero-filled.
    template <bool WHOLE>
    __device__ void issue(int depth, Stage<T>& stage) {
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
    int rows_;  // of the tile that are in range
};

// This thread's copies of B, tile after tile along K. VEC = 4: all float4 of B are aligned, and in
// range or out of range as a whole. VEC = 1: any alignment, so B is copied float by float, too.
template <class T, int VEC>
class CopiesOfB {
    static constexpr int QUADS = T::BN / 4;          // float4 in a row of the tile
    static constexpr int ROWS = T::THREADS / QUADS;  // rows that the block copies at once
    static_assert(T::THREADS % QUADS == 0 && T::BK % ROWS == 0,
                  "CopiesOfB: every thread must copy the same number of float4");

  public:
    // The first tile starts at (k, first_col).
    __device__ CopiesOfB(const Sgemm& gemm, std::size_t k, std::size_t first_col)
        : from_(gemm.b.data() + (k + row()) * gemm.b.leading_dimension() + first_col + col()),
          leading_dimension_(gemm.b.leading_dimension()),
          cols_(static_cast<unsigned>(min(gemm.n() - min(gemm.n(), first_col + col()), std::size_t{4}))) {}

    // As for A; `depth` counts rows.
    template <bool WHOLE>
    __device__ void issue(int depth, Stage<T>& stage) {
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
    unsigned cols_;  // of this thread's four that are in range
};

// A thread's operands for one k: TM values of a column of A, TN values of a row of B.
template <class T>
struct Fragments {
    static constexpr int QUADS = (T::TM + T::TN) / 4;  // float4, those of B first

    float a[T::TM];
    float b[T::TN];

    __device__ void load_quad(int quad, const Stage<T>& stage, int k, const Place& place) {
        if (quad < T::TN / 4) {
            load(&stage.b[k][place.col + place_of<T::LANES_N>(0, quad * 4)], b + quad * 4);
        } else {
            const int i = quad * 4 - T::TN;
            load(&stage.a[k][place.row + place_of<T::LANES_M>(0, i)], a + i);
        }
    }

    __device__ void load_all(const Stage<T>& stage, int k, const Place& place) {
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad)
            load_quad(quad, stage, k, place);
    }

  private:
    static __device__ void load(const float* from, float* to) {
        const auto four = course::Pack<float, 4>::load(from);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            to[j] = four.value[j];
    }
};

// sums += the outer product of `now`. Between its rows, `next` is loaded from row k of `stage`: the
// loads of k + 1 are spread over the multiply-adds of k.
template <class T>
__device__ void multiply_and_load_ahead(const Fragments<T>& now, float (&sums)[T::TM][T::TN],
                                        Fragments<T>& next, const Stage<T>& stage, int k,
                                        const Place& place) {
    constexpr int QUADS = Fragments<T>::QUADS;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            if (quad * T::TM / QUADS == i) next.load_quad(quad, stage, k, place);
        }
#pragma unroll
        for (int step = 0; step < T::TN; ++step) {  // snake: even rows to the right, odd rows back
            const int j = i % 2 == 0 ? step : T::TN - 1 - step;
            sums[i][j] += now.a[i] * now.b[j];
        }
    }
}

// Zeros in the first k of a stage, by all threads of the block.
template <class T>
__device__ void clear_first_k(Stage<T>& stage) {
    for (int i = static_cast<int>(threadIdx.x); i < T::BM; i += T::THREADS)
        stage.a[0][i] = 0;
    for (int i = static_cast<int>(threadIdx.x); i < T::BN; i += T::THREADS)
        stage.b[0][i] = 0;
}

// sums += A B, for the BM x BN tile of C at `origin` and columns [begin, end) of A. All threads of
// the block call it. `stages` are T::STAGES stages in shared memory; when it returns, they are safe
// to overwrite.
template <class T, int VEC>
__device__ void multiply_pipelined(const Sgemm& gemm, const Origin& origin, std::size_t begin,
                                   std::size_t end, Stage<T>* stages, float (&sums)[T::TM][T::TN]) {
    static_assert(T::STAGES >= 2, "multiply_pipelined: one stage is multiplied, at least one is in flight");
    static_assert(T::BK % 2 == 0,
                  "multiply_pipelined: BK must be even: the fragments have to be back at 0 when a tile ends");
    constexpr int AHEAD = T::STAGES - 1;  // tiles in flight, at most
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    const auto tiles = static_cast<int>(course::ceil_div<std::size_t>(end - begin, T::BK));
    const auto last_depth = static_cast<int>((end - begin + T::BK - 1) % T::BK) + 1;
    const auto depth_of = [&](int tile) { return tile + 1 < tiles ? T::BK : last_depth; };
    CopiesOfA<T> copies_of_a(gemm, origin.row, begin);
    CopiesOfB<T, VEC> copies_of_b(gemm, begin, origin.col);

    // Prologue: the first AHEAD tiles, and the fragments of the first k. Every tile has a group of
    // copies, an empty one if there is no such tile, so that every wait means the same: all but the
    // AHEAD - 1 newest groups are complete.
#pragma unroll
    for (int tile = 0; tile < AHEAD; ++tile) {
        if (tile < tiles) {
            copies_of_a.template issue<false>(depth_of(tile), stages[tile]);
            copies_of_b.template issue<false>(depth_of(tile), stages[tile]);
        }
        course::ptx::cp_async_commit();
    }
    // The main loop loads one fragment past the last tile, which is not used. Unless that stage has
    // held a tile, it would read uninitialised memory.
    if (tiles < T::STAGES) clear_first_k(stages[tiles]);
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    Fragments<T> fragments[2];
    fragments[0].load_all(stages[0], 0, place);
    int full = 0;      // the stage that fragments are loaded from
    int free = AHEAD;  // the stage that is copied to next
    const auto multiply_tile = [&](auto issue_copies) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                issue_copies(stages[free]);
                course::ptx::cp_async_commit();
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete; this one is safe to overwrite
                full = full + 1 == T::STAGES ? 0 : full + 1;
            }
            multiply_and_load_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[full],
                                       (k + 1) % T::BK, place);
        }
    };
    // Main loop: every tile that it copies is in range along K as a whole.
    int tile = 0;
#pragma unroll 1
    for (; tile + AHEAD + 1 < tiles; ++tile) {
        multiply_tile([&](Stage<T>& stage) {
            copies_of_a.template issue<true>(T::BK, stage);
            copies_of_b.template issue<true>(T::BK, stage);
        });
    }
    // The last STAGES tiles. The first of them copies the last tile, which K may cut off; after it
    // nothing is left to copy.
#pragma unroll 1
    for (; tile < tiles; ++tile) {
        multiply_tile([&](Stage<T>& stage) {
            if (tile + AHEAD >= tiles) return;
            copies_of_a.template issue<false>(last_depth, stage);
            copies_of_b.template issue<false>(last_depth, stage);
        });
    }
    __syncthreads();  // all fragments are loaded: the stages are safe to overwrite
}

// Four adjacent results in a row of a thread, in the order in which they are stored: of two, the
// second one first.
//
// The values of one float4 are in consecutive registers, the first of them in an even one. So
// sums[i][j] is in an odd register for even j, and b[j], which was loaded as part of a float4, in
// an even one. Even and odd registers are two banks: a multiply-add reads both in the same cycle.
// In their natural order, both would be in one bank, and would be read one after the other (step
// 11).
template <class T>
__device__ course::Pack<float, 4> swapped(const float (&sums)[T::TM][T::TN], int i, int j) {
    return {{sums[i][j + 1], sums[i][j], sums[i][j + 3], sums[i][j + 2]}};
}

// Epilogue: stores the block's results to the tile of C at `origin`. A warp takes row i of all its
// lanes through its part of `shared`, LANES_M rows of WN, so that it stores whole rows of its tile.
template <class T, int VEC>
__device__ void write_tile(const Sgemm& gemm, const Origin& origin, const float (&sums)[T::TM][T::TN],
                           float* shared) {
    constexpr int QUADS = T::WN / 4;  // float4 in a row of the warp's tile
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
            // Float by float: adjacent lanes store adjacent elements. n ^ 1 undoes the swap.
#pragma unroll
            for (int n = lane; n < T::LANES_M * T::WN; n += 32) {
                write_element(gemm, origin.row + place.row + place_of<T::LANES_M>(n / T::WN, i),
                              origin.col + place.col + n % T::WN, rows[n ^ 1]);
            }
        }
        __syncwarp();
    }
}

// BLOCKS: how many blocks an SM must be able to run at the same time.
template <class T, int VEC, int BLOCKS>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void sgemm_multi_stage(Sgemm gemm) {
    extern __shared__ float4 shared[];  // the stages; afterwards, rows of C
    wait_for_kernel_in_front();         // this kernel may have started early
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, blockIdx.x);
    float sums[T::TM][T::TN] = {};  // TM x TN results of this thread
    multiply_pipelined<T, VEC>(gemm, origin, 0, gemm.k(), reinterpret_cast<Stage<T>*>(shared), sums);
    write_tile<T, VEC>(gemm, origin, sums, reinterpret_cast<float*>(shared));
}

}  // namespace gemm
