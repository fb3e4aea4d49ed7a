// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
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
    // TODO gemm_ladder/swizzle, about 40 minutes.
    // Step 7, but row `row` of A stands in row k of its transposed tile at column `swizzled<BK, VEC>(k,
    // row)`, not at `row`, so that what a warp stores with one instruction falls into different banks.
    // `swizzled` is yours: row, changed by an XOR that depends on k. It may move whole fours only, so that a
    // float4 remains one.
    //
    // Given: `a_share.store_transposed(tile, swizzled<BK, VEC>)` stores element (row, k) at [k][swizzled(k,
    // row)]. Reading is up to you: thread ty reads its fours of row k with
    // `load_fragment<ROWS>(a_tile[stage][k], t, fragment)`, t being the thread whose fours stand there now.
    // Inspection counts the wavefronts.
    return {};
}

// Idea: rows of A that are stored together go to banks of their own: an XOR of their place in A's tile.
// Cost removed: the bank conflicts of A's stores.
// Still limits it: the loads of fragments, which had no conflicts and have not become fewer.
template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_swizzle(Sgemm gemm) {
    // TODO gemm_ladder/swizzle: this one too, see swizzled.
}

}  // namespace

Kernel swizzle() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_swizzle<kBM, kBN, kBK, kTM, kTN, 4>,
                        sgemm_swizzle<kBM, kBN, kBK, kTM, kTN, 1>>::kernel();
}

}  // namespace gemm
