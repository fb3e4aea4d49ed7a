// Step 8: A's tile in shared memory without bank conflicts.
//
// Change:     the columns of A's tile are exchanged by an XOR that depends on the row: swizzled(). Nothing else.
// Why:        32 banks hand out a word each in a cycle, a wavefront; lanes that want other words of one bank wait for the next one.
//   access, of a warp         lanes                                                          wavefronts: before    after
//   store A, word of a pack   16 rows of A x 2 packs: 2 words in each of 16 banks                       2          1
//   (VEC = 1)                 4 rows of A x 8 k: 8 words in each of 4 banks                             8          1
//   store B, float4           8 lanes at a time, 8 neighbours, 128 bytes: every bank once               4          4
//   load A, float4            2 different ones, each for 16 lanes: 8 words in 8 banks                   1          1
//   load B, float4            16 neighbours, 256 bytes, each for 2 lanes: every bank twice              2          2
// Prediction: for a tile, a warp takes 4 x 2 + 4 stored and 8 x (2 x 1 + 2 x 2) loaded = 60 wavefronts, now 56. Its 512 multiply-adds take
//             a scheduler 512 cycles, the 8 warps of a block 1024 with four of them; 8 x 60 = 480 wavefronts are done in the meantime.
//             So conflicts go to 0 and no time is won: they were never waited for. The second address of A costs instructions.
// Counter:    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum to 0; l1tex__data_pipe_lsu_wavefronts_mem_shared.sum -7 %.
// Measured:   about 43 TFLOP/s, 8 % less than step 7: no time won, and the instructions paid for.
// Next:       the loads, 48 of the 56: which results the threads of one warp have (step 9).
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

// Where row `row` of A stands in row k of its tile. One store of a warp has BK / VEC packs side by side of 32 * VEC / BK rows: the rows
// of each pack go to banks of their own. The XOR moves whole fours, so that a float4 stays one.
template <int BK, int VEC>
__device__ int swizzled(int k, int row) {
    return row ^ (k / VEC * (32 * VEC / BK));
}

// Idea: rows of A that are stored together go to banks of their own: an XOR of their place in A's tile.
// Cost removed: the bank conflicts of A's stores.
// Still limits it: the loads of fragments, which had no conflicts and have not become fewer.
template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_swizzle(Sgemm gemm) {
    constexpr int ROWS = BM / TM;  // of threads
    constexpr int COLS = BN / TN;
    constexpr int THREADS = ROWS * COLS;
    static_assert(BM % TM == 0 && BN % TN == 0, "swizzle: TM must divide BM, TN must divide BN");
    static_assert(TM % 4 == 0 && TN % 4 == 0, "swizzle: a fragment is a whole number of float4");
    static_assert(BK % 2 == 0, "swizzle: the fragments of the next tile must fall to the first of the two");
    static_assert(32 * VEC % (4 * BK) == 0, "swizzle: a pack's rows of A in one store must be whole fours");
    static_assert(ROWS % 8 == 0, "swizzle: the fours of ROWS threads must be whole rounds of the 32 banks");
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
    a_share.store_transposed(a_tile[0], swizzled<BK, VEC>);
    b_share.store(b_tile[0]);
    __syncthreads();  // the first tiles are complete

    int stage = 0;
    float a_fragment[2][TM];
    float b_fragment[2][TN];
    load_fragment<ROWS>(a_tile[stage][0], ty, a_fragment[0]);  // row 0 stands as it is
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
                a_share.store_transposed(a_tile[stage], swizzled<BK, VEC>);
                b_share.store(b_tile[stage]);
                __syncthreads();  // the next tiles are complete, and nobody reads these any more
            }
            load_fragment<ROWS>(a_tile[stage][(k + 1) % BK], swizzled<BK, VEC>((k + 1) % BK, ty * 4) / 4,
                                a_fragment[(k + 1) % 2]);
            load_fragment<COLS>(b_tile[stage][(k + 1) % BK], tx, b_fragment[(k + 1) % 2]);
            multiply_fragments(a_fragment[k % 2], b_fragment[k % 2], sums);
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
        write_row_of_packs<VEC, COLS>(gemm, tile.row + place_of<ROWS>(ty, i), tile.col + tx * 4, sums[i]);
}

}  // namespace

Kernel swizzle() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_swizzle<kBM, kBN, kBK, kTM, kTN, 4>,
                        sgemm_swizzle<kBM, kBN, kBK, kTM, kTN, 1>>::kernel();
}

}  // namespace gemm
