// Step 12: a multistage pipeline of asynchronous copies.
//
// Change:     cp.async copies tiles from global to shared memory past the registers. Four stages
//             form a ring buffer: one tile is multiplied, up to three are in flight. A block has
//             128 x 256 results, and one block of 256 threads is on a multiprocessor instead of two
//             of 128. Results are stored in swapped order.
// Why:        registers no longer hold a tile in flight, so they can hold a larger tile of C. A tile
//             twice as wide needs 3/256 words from global memory for a multiply-add instead of
//             4/256. The swapped order keeps sums and factors in different register banks, as in
//             step 11.
// Prediction: no warp stores tiles in the main loop: beside multiply-adds and shared loads only the
//             copies are left. Global loads -25 %. Faster than step 10 by what register bank
//             conflicts have cost.
// Counter:    smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls; so does
//             smsp__inst_executed_op_shared_st.sum.
// Measured:   about 53 TFLOP/s, 1.14 times step 10: 3 % more than cuBLAS.
// Next:       512 tiles on 132 multiprocessors are 3.88 rounds, and take 4.
//
// The ring buffer, tile by tile along K:
//
//     stage              0           1           2           3
//     tile t             multiplied  complete    in flight   free: the copies of t + 3 are issued
//     tile t + 1         free        multiplied  complete    in flight
//
// Two additions let step 14 use this kernel for seven tiles and any matrix. T holds the constants of
// a tile (tiles.hpp); comments give those of this step. ALIGNED: every row of A, B and C is a whole
// number of aligned float4.
#include <vector>

#include "../edges.cuh"
#include "beyond.hpp"
#include "common/device/ptx.cuh"
#include "launch.hpp"
#include "tiles.hpp"

namespace gemm {
namespace {

// A's tile is transposed on its way: each float is copied to a place of its own, and a float4 of B
// as it is. A warp copies 8 columns of 4 rows of A; rows that are 4 floats longer place these 32
// floats in 32 banks.
template <class T>
struct alignas(16) Stage {
    float a[T::BK][T::BM + 4];
    float b[T::BK][T::BN];
};

template <class T, bool ALIGNED>
__global__ __launch_bounds__(T::THREADS, T::BLOCKS) void sgemm_multi_stage(Sgemm gemm) {
    constexpr int BM = T::BM;  // a block's tile of C: BM x BN = 128 x 256
    constexpr int BN = T::BN;
    constexpr int BK = T::BK;  // columns of A's tile, rows of B's: 8
    constexpr int WM = T::WM;  // a warp's tile of C: WM x WN = 64 x 64
    constexpr int WN = T::WN;
    constexpr int TM = T::TM;  // a thread's results: TM x TN = 16 x 8
    constexpr int TN = T::TN;
    constexpr int LANES_M = WM / TM;  // a warp's lanes: LANES_M x LANES_N = 4 x 8
    constexpr int LANES_N = WN / TN;
    constexpr int AHEAD = T::STAGES - 1;  // tiles in flight or complete: 3
    static_assert(AHEAD >= 1, "one stage to multiply and at least one to copy to");
    static_assert(BK % 2 == 0, "the fragments must be back at 0 when a tile ends");

    extern __shared__ float4 shared[];
    Stage<T>* const stages = reinterpret_cast<Stage<T>*>(shared);
    // The block's tile of C begins at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: as in step 10, fours of rows, LANES_M fours apart, and fours of columns, LANES_N
    // fours apart.
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int warp_row = warp / (BN / WN) * WM;
    const int warp_col = warp % (BN / WN) * WN;
    const int row = warp_row + lane / LANES_N * 4;
    const int col = warp_col + lane % LANES_N * 4;
    // Thread to copies: element (a_row, a_col) of A's tile and those A_DOWN rows further down and
    // A_RIGHT columns to the right; the float4 of B's tile from (b_row, b_col) on, and those B_DOWN
    // rows further down.
    constexpr int A_RIGHT = 8;
    constexpr int A_DOWN = T::THREADS / A_RIGHT;
    constexpr int B_DOWN = T::THREADS * 4 / BN;
    static_assert(BK % A_RIGHT == 0 && BM % A_DOWN == 0 && BK % B_DOWN == 0,
                  "all threads copy equally many elements");
    const int a_row = thread / A_RIGHT;
    const int a_col = thread % A_RIGHT;
    const int b_row = thread / (BN / 4);
    const int b_col = thread % (BN / 4) * 4;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);                     // of the tile
    const int b_count = min(remaining(gemm.n(), col0 + b_col), 4);  // elements of this thread's float4
    const int tiles = static_cast<int>((gemm.k() + BK - 1) / BK);
    const int last_depth = static_cast<int>((gemm.k() + BK - 1) % BK) + 1;  // columns of the last one

    // Issues this thread's copies of the next tile, of which `depth` columns of A and rows of B are
    // in range. WHOLE: all of them are. Out-of-range elements are zero-filled.
    const auto copy_next = [&](bool WHOLE, int depth, Stage<T>& stage) {
#pragma unroll
        for (int k = 0; k < BK; k += A_RIGHT) {
#pragma unroll
            for (int m = 0; m < BM; m += A_DOWN)
                course::ptx::cp_async_4(&stage.a[a_col + k][a_row + m], a + m * lda + k,
                                        a_row + m < rows && (WHOLE || a_col + k < depth));
        }
#pragma unroll
        for (int k = 0; k < BK; k += B_DOWN) {
            float* const to = &stage.b[b_row + k][b_col];
            const float* const from = b + k * ldb;
            const int count = WHOLE || b_row + k < depth ? b_count : 0;
            if (ALIGNED) {
                course::ptx::cp_async_16(to, from, count * sizeof(float));
            } else {
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    course::ptx::cp_async_4(to + n, from + n, n < count);
            }
        }
        a += BK;
        b += BK * ldb;
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    // One of the (TN + TM) / 4 float4 of the fragments, those of B first.
    constexpr int FOURS = (TN + TM) / 4;
    const auto load_four = [&](const Stage<T>& stage, int k, int buffer, int four) {
        const int j = four * 4;
        const int i = four * 4 - TN;
        if (i < 0) {
            load4(&stage.b[k][col + j * LANES_N], &b_fragment[buffer][j]);
        } else {
            load4(&stage.a[k][row + i * LANES_M], &a_fragment[buffer][i]);
        }
    };

    // Prologue: the first AHEAD tiles, a group of copies for each.
#pragma unroll
    for (int tile = 0; tile < AHEAD; ++tile) {
        if (tile < tiles) copy_next(false, tile + 1 < tiles ? BK : last_depth, stages[tile]);
        course::ptx::cp_async_commit();
    }
    // After the last tile, the first fragments of the next stage are loaded, but not used. Where no
    // tile has been copied there, they are zero-filled.
    if (tiles < T::STAGES) {
        for (int m = thread; m < BM; m += T::THREADS)
            stages[tiles].a[0][m] = 0;
        for (int n = thread; n < BN; n += T::THREADS)
            stages[tiles].b[0][n] = 0;
    }
    course::ptx::cp_async_wait<AHEAD - 1>();  // this thread's part of the first tile has arrived
    __syncthreads();                          // the first tile is complete

    float sums[TM][TN] = {};  // TM x TN results of this thread
    int now = 0;              // the stage that is multiplied
    int free = AHEAD;         // the stage that is copied to
#pragma unroll
    for (int four = 0; four < FOURS; ++four)
        load_four(stages[now], 0, 0, four);
    const auto multiply_tile = [&](int tile, bool WHOLE) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == T::COPY_AT) {
                if (WHOLE || tile + AHEAD < tiles) copy_next(WHOLE, last_depth, stages[free]);
                // A group for every tile, even an empty one, so that a wait always counts the same.
                course::ptx::cp_async_commit();
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next tile is complete; this one is safe to overwrite
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                // The fragments of k + 1 are loaded between the rows of this outer product.
#pragma unroll
                for (int four = 0; four < FOURS; ++four) {
                    if (four * TM / FOURS == i) load_four(stages[now], (k + 1) % BK, (k + 1) % 2, four);
                }
#pragma unroll
                for (int step = 0; step < TN; ++step) {  // a snake, as in step 5
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[k % 2][i] * b_fragment[k % 2][j];
                }
            }
        }
    };
    int tile = 0;
#pragma unroll 1
    for (; tile + AHEAD + 1 < tiles; ++tile)
        multiply_tile(tile, true);
#pragma unroll 1
    for (; tile < tiles; ++tile)  // the last tile is copied, which may end anywhere, and then none
        multiply_tile(tile, false);
    __syncthreads();  // the stages are safe to overwrite

    // Epilogue: row by row of each thread, through shared memory of the warp, so that a warp stores
    // whole rows of its tile. Of two neighbours the second one first, for the sake of the main loop:
    // sums[i][j] is in an odd register for even j, and b_fragment[j] in an even one (step 11).
    static_assert(T::THREADS / 32 * LANES_M * WN * sizeof(float) <= sizeof(Stage<T>) * T::STAGES,
                  "the stages must have room for a row of each thread");
    float* const warp_rows = reinterpret_cast<float*>(shared) + warp * LANES_M * WN;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const std::size_t first_row = row0 + warp_row + i / 4 * LANES_M * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const float* const s = &sums[i][j];
            float* const to = &warp_rows[lane / LANES_N * WN + lane % LANES_N * 4 + j * LANES_N];
            *reinterpret_cast<float4*>(to) = {s[1], s[0], s[3], s[2]};
        }
        __syncwarp();
        if (ALIGNED) {
#pragma unroll
            for (int n = lane * 4; n < LANES_M * WN; n += 128) {
                const float4 four = *reinterpret_cast<const float4*>(&warp_rows[n]);
                const float in_order[] = {four.y, four.x, four.w, four.z};
                store4(gemm, first_row + n / WN * 4, col0 + warp_col + n % WN, in_order);
            }
        } else {
#pragma unroll
            for (int n = lane; n < LANES_M * WN; n += 32)  // n ^ 1: the other one of two neighbours
                store(gemm, first_row + n / WN * 4, col0 + warp_col + n % WN, warp_rows[n ^ 1]);
        }
        __syncwarp();
    }
}

template <class T>
Kernel kernel() {
    return block_per_tile_in_dynamic_memory<T::BM, T::BN, T::THREADS, sizeof(Stage<T>) * T::STAGES,
                                            sgemm_multi_stage<T, true>, sgemm_multi_stage<T, false>>();
}

template <class... T>
std::vector<Kernel> kernels(TileList<T...>) {
    return {kernel<T>()...};
}

}  // namespace

Kernel multi_stage() {
    return kernel<Tile128x256x8>();
}

std::vector<Kernel> multi_stage_of_all_tiles() {
    return kernels(AllTiles{});
}

}  // namespace gemm
