// Step 7: the next tile is on its way during this one.
//
// Change:     two stages in shared memory. The next tile is loaded to registers before this one's arithmetic and stored to the other
//             stage after it. And two fragments: those of k + 1 are read while those of k are multiplied.
// Why:        a load from global memory is needed 448 multiply-adds of its warp later, a load from shared memory 64; and who stores
//             need not wait for who reads, so that one barrier for a tile is enough.
// Prediction: as many instructions; the waiting for global loads goes. Registers: 8 for the tile and 16 for the fragments on their
//             way, up to the limit of 128 that two blocks leave; shared memory 16 KiB instead of 8. The other block hid much already.
// Counter:    smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active and ..._stalled_barrier_... fall.
// Measured:   about 46 TFLOP/s, 1.3 times step 6, nine tenths of cuBLAS.
// Next:       the transposed stores of A meet in the same banks.
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

// Idea: load the next tile to registers, do this one's arithmetic, store the next tile to the other stage; the same with fragments.
// Cost removed: waiting for loads, global and shared, and one of two barriers.
// Still limits it: shared memory: conflicts in its stores, and as many loads as before.
template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_double_buffering(Sgemm gemm) {
    constexpr int ROWS = BM / TM;  // of threads
    constexpr int COLS = BN / TN;
    constexpr int THREADS = ROWS * COLS;
    static_assert(BM % TM == 0 && BN % TN == 0, "double_buffering: TM must divide BM, TN must divide BN");
    static_assert(TM % 4 == 0 && TN % 4 == 0, "double_buffering: a fragment is a whole number of float4");
    static_assert(BK % 2 == 0,
                  "double_buffering: the fragments of the next tile must fall to the first of the two");
    __shared__ alignas(16) float a_tile[2][BK][BM];
    __shared__ alignas(16) float b_tile[2][BK][BN];
    const Origin tile = origin_of_tile<BM, BN>(gemm, blockIdx.x);
    // Four rows and four columns, then the next four ROWS * 4 rows or COLS * 4 columns further: at each float4 of b_tile and of C,
    // neighbouring threads have neighbouring float4.
    const int ty = static_cast<int>(threadIdx.x) / COLS;
    const int tx = static_cast<int>(threadIdx.x) % COLS;

    Window<BK, VEC> a_window(gemm.a, tile.row, 0);
    Window<BN, VEC> b_window(gemm.b, 0, tile.col);
    TileShare<BM, BK, THREADS, VEC> a_share;
    TileShare<BK, BN, THREADS, VEC> b_share;
    a_share.load(a_window);
    b_share.load(b_window);
    a_share.store_transposed(a_tile[0]);
    b_share.store(b_tile[0]);
    __syncthreads();  // the first tiles are complete

    int stage = 0;
    float a_fragment[2][TM];
    float b_fragment[2][TN];
    load_fragment<ROWS>(a_tile[stage][0], ty, a_fragment[0]);
    load_fragment<COLS>(b_tile[stage][0], tx, b_fragment[0]);
    float sums[TM][TN] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a_window.move_right(BK);
        b_window.move_down(BK);
        a_share.load(a_window);  // behind the last tile: zeros, which nobody uses
        b_share.load(b_window);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 == BK) {
                stage ^= 1;
                a_share.store_transposed(a_tile[stage]);
                b_share.store(b_tile[stage]);
                __syncthreads();  // the next tiles are complete, and nobody reads these any more
            }
            load_fragment<ROWS>(a_tile[stage][(k + 1) % BK], ty, a_fragment[(k + 1) % 2]);
            load_fragment<COLS>(b_tile[stage][(k + 1) % BK], tx, b_fragment[(k + 1) % 2]);
            multiply_fragments(a_fragment[k % 2], b_fragment[k % 2], sums);
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
        write_row_of_packs<VEC, COLS>(gemm, tile.row + place_of<ROWS>(ty, i), tile.col + tx * 4, sums[i]);
}

}  // namespace

Kernel double_buffering() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_double_buffering<kBM, kBN, kBK, kTM, kTN, 4>,
                        sgemm_double_buffering<kBM, kBN, kBK, kTM, kTN, 1>>::kernel();
}

}  // namespace gemm
