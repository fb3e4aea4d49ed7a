// Step 6: four floats at a time.
//
// Change:     Window<COLS, VEC> loads packs of VEC = 4 floats where rows are aligned; A's tile is stored transposed; fragments
//             are read, and C is written, as float4. A thread's rows and columns come in fours. Where rows are not aligned, VEC = 1
//             runs: the same kernel, whose accesses to global memory are single.
// Why:        moving 16 bytes takes one instruction instead of four, and its address is worked out once.
// Prediction: for 512 multiply-adds 32 shared loads instead of 80, 2 global loads instead of 8, 5 shared stores instead of 8; 600
//             instructions instead of 700. The words from shared memory stay 0.25 for a multiply-add.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.4 of step 5's, smsp__inst_executed_op_global_ld.sum to 0.25.
// Measured:   about 37 TFLOP/s, 1.2 times step 5.
// Next:       between the two barriers of a tile, all warps of a block wait for its global loads at the same time.
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

// Idea: every load and store moves four neighbours. A's tile is stored transposed, so that a fragment of A has neighbours too.
// Cost removed: three of four instructions that move data, and the work on addresses that goes with them.
// Still limits it: all warps wait at the same barriers for the same global loads.
template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_vectorized(Sgemm gemm) {
    constexpr int ROWS = BM / TM;  // of threads
    constexpr int COLS = BN / TN;
    constexpr int THREADS = ROWS * COLS;
    static_assert(BM % TM == 0 && BN % TN == 0, "vectorized: TM must divide BM, TN must divide BN");
    static_assert(TM % 4 == 0 && TN % 4 == 0, "vectorized: a fragment is a whole number of float4");
    static_assert(BM * BK % (THREADS * VEC) == 0 && BK * BN % (THREADS * VEC) == 0,
                  "vectorized: every thread loads the same number of packs");
    __shared__ alignas(16) float a_tile[BK][BM];
    __shared__ alignas(16) float b_tile[BK][BN];
    const Origin tile = origin_of_tile<BM, BN>(gemm, blockIdx.x);
    // Four rows and four columns, then the next four ROWS * 4 rows or COLS * 4 columns further: at each float4 of b_tile and of C,
    // neighbouring threads have neighbouring float4.
    const int ty = static_cast<int>(threadIdx.x) / COLS;
    const int tx = static_cast<int>(threadIdx.x) % COLS;

    Window<BK, VEC> a_window(gemm.a, tile.row, 0);
    Window<BN, VEC> b_window(gemm.b, 0, tile.col);
    float sums[TM][TN] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
#pragma unroll
        for (int down = 0; down < BM; down += THREADS * VEC / BK) {
            const auto pack = a_window.load(down);
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                a_tile[a_window.first_col() + j][a_window.first_row() + down] = pack.value[j];
        }
#pragma unroll
        for (int down = 0; down < BK; down += THREADS * VEC / BN)
            b_window.load(down).store(&b_tile[b_window.first_row() + down][b_window.first_col()]);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];
            float b_fragment[TN];
            load_fragment<ROWS>(a_tile[k], ty, a_fragment);
            load_fragment<COLS>(b_tile[k], tx, b_fragment);
            multiply_fragments(a_fragment, b_fragment, sums);
        }
        a_window.move_right(BK);
        b_window.move_down(BK);
        __syncthreads();  // nobody needs them any more
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
        write_row_of_packs<VEC, COLS>(gemm, tile.row + place_of<ROWS>(ty, i), tile.col + tx * 4, sums[i]);
}

}  // namespace

Kernel vectorized() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_vectorized<kBM, kBN, kBK, kTM, kTN, 4>,
                        sgemm_vectorized<kBM, kBN, kBK, kTM, kTN, 1>>::kernel();
}

}  // namespace gemm
