// Step 10: warp tiling without bank conflicts.
//
// Change:     A's tile is stored and read through the XOR of step 8, carried on to BK = 16: swizzled(), load_swizzled_fragment().
// Why:        of a warp's accesses, the stores of A are the only ones with conflicts:
//   access, of a warp         lanes                                                          wavefronts: before    after
//   store A, word of a pack   8 rows of A x 4 packs: 4 words in each of 8 banks                         4          1
//   (VEC = 1)                 2 rows of A x 16 k: 16 words in each of 2 banks                          16          1
//   store B, float4           8 lanes at a time, 8 neighbours, 128 bytes: every bank once               4          4
//   (VEC = 1)                 32 neighbours: every bank once                                            1          1
//   load A, float4            4 neighbours, 64 bytes, each for 8 lanes: 16 words in 16 banks            1          1
//   load B, float4            8 neighbours, 128 bytes, each for 4 lanes: every bank once                1          1
//             With VEC = 1 the XOR must tell 16 k apart, but 32 banks hold only 8 float4: it goes on into the float4.
// Prediction: for a tile, a warp takes 16 x 4 + 4 x 4 stored and 16 x (4 + 2) loaded = 176 wavefronts, now 128: -27 %. Its 2048 multiply-
//             adds take a scheduler 2048 cycles, and 4 warps with 4 schedulers as many; 4 x 176 = 704 wavefronts are done in the
//             meantime. So little time is won, where rows are aligned: 192 cycles at most just before a barrier, while the other block
//             computes. Where they are not, a warp stores 4 times as much: 16 x 16 + 16 + 96 = 368 wavefronts, now 128.
// Counter:    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum to 0, l1tex__data_pipe_lsu_wavefronts_mem_shared.sum -27 %.
// Measured:   about 46.5 TFLOP/s, 1 % more than step 9.
// Next:       a small C has fewer tiles than the GPU has multiprocessors.
#include "../block_tile.cuh"
#include "../launch.hpp"
#include "../swizzled_tile.cuh"
#include "../thread_tile.cuh"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

using Tile = TileShape<128, 128, 16, 64, 64, 16, 8>;
constexpr int kBlocks = 2;  // that a multiprocessor runs at the same time

// Idea: the XOR of step 8 for warp tiles: rows of A that are stored together go to banks of their own, and every float4 stays one.
// Cost removed: the bank conflicts of A's stores, the only ones of step 9.
// Still limits it: registers: multiply-adds that read two of one bank. And a C of few tiles leaves multiprocessors without a block.
template <class T, int VEC>
__global__ __launch_bounds__(T::THREADS, kBlocks) void sgemm_warp_tiling_swizzle(Sgemm gemm) {
    static_assert(T::BK % 2 == 0,
                  "warp_tiling_swizzle: the fragments of the next tile must fall to the first of the two");
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
    a_share.store_transposed(a_tile[0], swizzled<T::BK, VEC>);
    b_share.store(b_tile[0]);
    __syncthreads();  // the first tiles are complete

    int stage = 0;
    float a_fragment[2][T::TM];
    float b_fragment[2][T::TN];
    load_fragment<T::LANES_N>(&b_tile[stage][0][place.col], 0, b_fragment[0]);
    load_swizzled_fragment<T, VEC>(a_tile[stage], 0, place.row, a_fragment[0]);
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
                a_share.store_transposed(a_tile[stage], swizzled<T::BK, VEC>);
                b_share.store(b_tile[stage]);
                __syncthreads();  // the next tiles are complete, and nobody reads these any more
            }
            load_fragment<T::LANES_N>(&b_tile[stage][(k + 1) % T::BK][place.col], 0, b_fragment[(k + 1) % 2]);
            load_swizzled_fragment<T, VEC>(a_tile[stage], (k + 1) % T::BK, place.row,
                                           a_fragment[(k + 1) % 2]);
            multiply_fragments(a_fragment[k % 2], b_fragment[k % 2], sums);
        }
    }
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
        write_row_of_packs<VEC, T::LANES_N>(gemm, tile.row + place.row + place_of<T::LANES_M>(0, i),
                                            tile.col + place.col, sums[i]);
}

}  // namespace

Kernel warp_tiling_swizzle() {
    return BlockPerTile<Tile::BM, Tile::BN, Tile::THREADS, sgemm_warp_tiling_swizzle<Tile, 4>,
                        sgemm_warp_tiling_swizzle<Tile, 1>>::kernel();
}

}  // namespace gemm
