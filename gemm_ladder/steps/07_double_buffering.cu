// Step 6: four floats at a time.
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
