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
    static_assert(T::BK % 2 == 0,
                  "warp_tiling: the fragments of the next tile must fall to the first of the two");
    __shared__ alignas(16) float a_tile[2][T::BK][T::BM];
    __shared__ alignas(16) float b_tile[2][T::BK][T::BN];
    const Origin tile = origin_of_tile<T::BM, T::BN>(gemm, blockIdx.x);
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));

    Window<T::BK, VEC> a_window(gemm.a, tile.row, 0);
    Window<T::BN, VEC> b_window(gemm.b, 0, tile.col);
    TileShare<T::BM, T::BK, T::THREADS, VEC> a_share;
    TileShare<T::BK, T::BN, T::THREADS, VEC> b_share;
    a_share.load_at_once(a_window);
    b_share.load_at_once(b_window);
    a_share.store_transposed(a_tile[0]);
    b_share.store(b_tile[0]);
    __syncthreads();  // the first tiles are complete

    int stage = 0;
    float a_fragment[2][T::TM];
    float b_fragment[2][T::TN];
    load_fragment<T::LANES_N>(&b_tile[stage][0][place.col], 0, b_fragment[0]);
    load_fragment<T::LANES_M>(&a_tile[stage][0][place.row], 0, a_fragment[0]);
    float sums[T::TM][T::TN] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += T::BK) {
        a_window.move_right(T::BK);
        b_window.move_down(T::BK);
        a_share.load_at_once(a_window);  // behind the last tile: zeros, which nobody uses
        b_share.load_at_once(b_window);
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k + 1 == T::BK) {
                stage ^= 1;
                a_share.store_transposed(a_tile[stage]);
                b_share.store(b_tile[stage]);
                __syncthreads();  // the next tiles are complete, and nobody reads these any more
            }
            load_fragment<T::LANES_N>(&b_tile[stage][(k + 1) % T::BK][place.col], 0, b_fragment[(k + 1) % 2]);
            load_fragment<T::LANES_M>(&a_tile[stage][(k + 1) % T::BK][place.row], 0, a_fragment[(k + 1) % 2]);
            multiply_fragments(a_fragment[k % 2], b_fragment[k % 2], sums);
        }
    }
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
        write_row_of_packs<VEC, T::LANES_N>(gemm, tile.row + place.row + place_of<T::LANES_M>(0, i),
                                            tile.col + place.col, sums[i]);
}

}  // namespace

Kernel warp_tiling() {
    return BlockPerTile<Tile::BM, Tile::BN, Tile::THREADS, sgemm_warp_tiling<Tile, 4>,
                        sgemm_warp_tiling<Tile, 1>>::kernel();
}

}  // namespace gemm
