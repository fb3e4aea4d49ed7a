// Step 5: operands copied to registers first.
//
// Change:     a column of A's tile and a row of B's are copied to register arrays, the fragments, and then multiplied, row by row in a
//             snake (multiply_fragments() in thread_tile.cuh).
// Why:        step 4 names a shared address in each of its multiply-adds. The compiler saw that 64 of them have 16 different operands
//             and kept those in registers: the listing of step 4 has the same 80 shared loads for 512 multiply-adds as this one.
//             What the fragments change is who decides: from here on the order of loads and multiply-adds is ours to write.
//             What the snake changes: at each turn one operand comes from the reuse cache. From registers alone, on an H200, that is
//             a few percent faster than all rows from left to right.
// Prediction: the same number of instructions; a few percent from the snake.
// Counter:    smsp__inst_executed_op_shared_ld.sum stays; smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls.
// Measured:   about 30 TFLOP/s, as step 4: registers do not decide yet, so the snake wins nothing here.
// Next:       80 shared loads, 8 global loads and 8 shared stores, each for one element or, where the compiler saw it, four.
#include "../block_tile.cuh"
#include "../launch.hpp"
#include "../thread_tile.cuh"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int kBM = 128;
constexpr int kBN = 128;
constexpr int kBK = 8;
constexpr int kTM = 8;
constexpr int kTN = 8;
constexpr int kThreads = (kBM / kTM) * (kBN / kTN);

// Idea: a column of A's tile and a row of B's go to registers first; then only registers are multiplied.
// Cost removed: none that the compiler had left; but the order of loads and arithmetic is now written, not guessed.
// Still limits it: instructions that only move data, one for each element.
template <int BM, int BN, int BK, int TM, int TN>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_register_fragments(Sgemm gemm) {
    constexpr int ROWS = BM / TM;  // of threads
    constexpr int COLS = BN / TN;
    static_assert(BM % TM == 0 && BN % TN == 0, "register_fragments: TM must divide BM, TN must divide BN");
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    const Origin tile = origin_of_tile<BM, BN>(gemm, blockIdx.x);
    // Rows ty, ty + ROWS, ty + 2 ROWS... and columns tx, tx + COLS, tx + 2 COLS... of the tile: at each load of b_tile and each
    // store to C, neighbouring threads have neighbouring elements.
    const int ty = static_cast<int>(threadIdx.x) / COLS;
    const int tx = static_cast<int>(threadIdx.x) % COLS;

    Window<BK> a_window(gemm.a, tile.row, 0);
    Window<BN> b_window(gemm.b, 0, tile.col);
    float sums[TM][TN] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        load_tile<ROWS * COLS>(a_window, a_tile);
        load_tile<ROWS * COLS>(b_window, b_tile);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];
            float b_fragment[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a_fragment[i] = a_tile[ty + i * ROWS][k];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b_fragment[j] = b_tile[k][tx + j * COLS];
            multiply_fragments(a_fragment, b_fragment, sums);
        }
        a_window.move_right(BK);
        b_window.move_down(BK);
        __syncthreads();  // nobody needs them any more
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
        write_row<COLS>(gemm, tile.row + ty + i * ROWS, tile.col + tx, sums[i]);
}

}  // namespace

Kernel register_fragments() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_register_fragments<kBM, kBN, kBK, kTM, kTN>>::kernel();
}

}  // namespace gemm
