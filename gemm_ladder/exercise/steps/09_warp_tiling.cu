// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 9: a tile for each warp.
//
// Change:     the block's tile is divided among its warps first, 64 x 64 for each, then among the lanes: 4 x 8 lanes with 16 x 8 results.
//             128 threads instead of 256; BK = 16. Tiles that lie in the matrix as a whole are loaded without a question at each pack.
// Why:        a warp of step 7 has 16 rows of 128 columns: for each k it reads 144 words for 2048 multiply-adds. A square reads less:
//             128 words for 4096. A lane reads 16 + 8 words for 128 multiply-adds, 0.19 for each, instead of 0.25.
//             Wavefronts (32 banks, a word each) of a warp, for each k: 4 of A and 2 of B for 128 multiply-adds of a lane; step 7: as many
//             for 64.
// Prediction: for 512 multiply-adds 24 shared loads instead of 32, and 557 instructions instead of 600: 92 % are multiply-adds. The
//             price: 128 sums, so that two blocks fill the registers with 8 warps of 64. Each has 128 independent multiply-adds for
//             each k, enough to hide its shared loads, and only one question (load_at_once()) between them and those of global memory.
// Counter:    l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum falls to 0.5 of step 7's, smsp__inst_executed_op_shared_ld.sum to 0.75.
// Measured:   about 46 TFLOP/s, as step 7: the wavefronts saved were hidden, and what decides is inside the registers (step 11).
// Next:       the transposed stores of A: with BK = 16, four words meet in each bank that they use.
#include "../block_tile.cuh"
#include "../launch.hpp"
#include "../thread_tile.cuh"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

using Tile = TileShape<128, 128, 16, 64, 64, 16, 8>;
constexpr int kBlocks = 2;  // that a multiprocessor runs at the same time

// Idea: a warp has a compact tile of its own, and its lanes larger ones: a word, once read, serves more multiply-adds.
// Cost removed: a quarter of the shared loads, and half of their wavefronts.
// Still limits it: bank conflicts of A's stores, just before a barrier at which all warps wait.
template <class T, int VEC>
__global__ __launch_bounds__(T::THREADS, kBlocks) void sgemm_warp_tiling(Sgemm gemm) {
    // TODO gemm_ladder/warp_tiling, about 30 minutes.
    // Step 7 with other owners: each warp has a WM x WN tile of the block's, each lane 16 x 8 results of it.
    // All sizes are in T: T::BM, T::BN, T::BK, T::TM, T::TN, T::THREADS, and LANES_M x LANES_N, how the 32
    // lanes of a warp stand.
    //
    // Given: `place_of_thread<T>(threadIdx.x)`, whose `row` and `col` say where in the block's tile this
    // thread's first four begins; its other fours lie LANES_M fours further down and LANES_N fours further
    // right, which is place_of<T::LANES_M>(0, i). `share.load_at_once(window)` is a faster load(). The rest
    // is as in step 7.
}

}  // namespace

Kernel warp_tiling() {
    return BlockPerTile<Tile::BM, Tile::BN, Tile::THREADS, sgemm_warp_tiling<Tile, 4>,
                        sgemm_warp_tiling<Tile, 1>>::kernel();
}

}  // namespace gemm
