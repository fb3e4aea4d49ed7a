// Step 5: operands copied to registers first.
//
// Change:     a column of A's tile and a row of B's are copied to register arrays, the fragments.
//             Then they are multiplied in a snake: row 0 of the results from left to right, row 1
//             from right to left, and so on. C is stored element by element again, as in 04b.
// Why:        step 4 names a shared address in each of its multiply-adds. But the compiler saw that
//             64 of them share only 16 different operands, and kept those in registers: SASS has 80
//             shared loads for 512 multiply-adds in both steps. The compiler still schedules the
//             loads here, too, but the fragments let us write k + 1's loads before k's
//             multiply-adds (step 7). The snake helps the register file. A multiply-add reads three
//             registers: sum, a and b. Registers lie in two banks, even and odd numbers, so two of
//             the three are in one bank. The reuse cache of the register file keeps an operand for
//             the next instruction. Along a row it keeps a[i], so that only sum and b[j] are read
//             from the banks. At a turn of the snake it keeps b[j], so in this order the banks
//             would never have to deliver all three. In a kernel that multiplies registers alone,
//             on an H200, that is a few percent faster than all rows from left to right.
// Prediction: the same number of instructions; a few percent from the snake.
// Counter:    smsp__inst_executed_op_shared_ld.sum stays;
//             smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls: a dispatch
//             stall is a cycle in which a ready instruction is held back, for instance by a
//             register bank.
// Measured:   as predicted: about 31 TFLOP/s, 3 % more than step 4. But the reason is another one
//             than ours: SASS contains no snake, because nvcc reorders the multiply-adds. 315 of
//             the 512 read two operands from one bank, more than the 276 of step 4. Written without
//             the snake, the kernel has as many, within 1 %. So the 3 % do not come from the
//             snake. Counters (H200) show where: warps wait less for loads from global memory
//             (long scoreboard: 0.55 instead of 0.70 warps per instruction), and there are 0.4 %
//             fewer instructions. Dispatch stalls are nearly the same, 1.10 instead of 1.13.
// Limit:      issue slots (counters: 63 % busy, FMA 49 %).
// Next:       80 shared loads, 8 global loads and 8 shared stores, most of one element; 16 of the
//             shared loads, where the compiler combined four, of a float4.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 8;  // columns of A's tile, rows of B's
constexpr int TM = 8;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int ROWS = BM / TM;  // of threads
constexpr int COLS = BN / TN;
constexpr int THREADS = ROWS * COLS;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
              "each thread loads the same number of elements");

__global__ __launch_bounds__(THREADS, 2) void sgemm_register_fragments(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty, ty + ROWS... and columns tx, tx + COLS... of the tile, as in step 4.
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    // Thread to loads: element (a_row, a_col) of A's tile and those THREADS / BK rows further down;
    // of B's likewise.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);

    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        const int depth = remaining(gemm.k(), k0);
#pragma unroll
        for (int down = 0; down < BM; down += THREADS / BK)
            a_tile[a_row + down][a_col] = a_row + down < rows && a_col < depth ? a[down * lda] : 0.0f;
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = b_row + down < depth && b_col < cols ? b[down * ldb] : 0.0f;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];  // TM values of a column of A
            float b_fragment[TN];  // TN values of a row of B
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a_fragment[i] = a_tile[ty + i * ROWS][k];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b_fragment[j] = b_tile[k][tx + j * COLS];
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[i] * b_fragment[j];
                }
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j)
            store(gemm, row0 + ty + i * ROWS, col0 + tx + j * COLS, sums[i][j]);
    }
}

}  // namespace

Kernel register_fragments() {
    return block_per_tile<BM, BN, THREADS, sgemm_register_fragments>();
}

}  // namespace gemm
