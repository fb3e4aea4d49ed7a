// The main loop of step 10, for later steps: warp tiling, a swizzled tile of A, two stages of tiles and of fragments.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "block_tile.cuh"
#include "swizzled_tile.cuh"
#include "tile.cuh"

namespace gemm {

// Two tiles of A, stored transposed, and two of B.
template <class T>
struct alignas(16) TileBuffers {
    float a[2][T::BK][T::BM];
    float b[2][T::BK][T::BN];
};

// sums += A B, for the BM x BN tile of C at `origin` and every STRIDE-th of the tiles along K, from tile `first` on. All threads of the
// block call it.
template <class T, int VEC, int STRIDE>
__device__ __forceinline__ void multiply_tiles(const Sgemm& gemm, const Origin& origin, int first,
                                               TileBuffers<T>& shared, float (&sums)[T::TM][T::TN]) {
    static_assert(T::BK % 2 == 0,
                  "multiply_tiles: the fragments of the next tile must fall to the first of the two");
    constexpr auto place_in_a = swizzled<T::BK, VEC>;
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    const std::size_t begin = static_cast<std::size_t>(first) * T::BK;

    Window<T::BK, VEC> a_window(gemm.a, origin.row, begin);
    Window<T::BN, VEC> b_window(gemm.b, begin, origin.col);
    TileShare<T::BM, T::BK, T::THREADS, VEC> a_share;
    TileShare<T::BK, T::BN, T::THREADS, VEC> b_share;
    a_share.load_at_once(a_window);
    b_share.load_at_once(b_window);
    a_share.store_transposed(shared.a[0], place_in_a);
    b_share.store(shared.b[0]);
    __syncthreads();  // the first tiles are complete

    int stage = 0;
    float a_fragment[2][T::TM];
    float b_fragment[2][T::TN];
    load_fragment<T::LANES_N>(&shared.b[stage][0][place.col], 0, b_fragment[0]);
    load_swizzled_fragment<T, VEC>(shared.a[stage], 0, place.row, a_fragment[0]);
    for (std::size_t k0 = begin; k0 < gemm.k(); k0 += STRIDE * T::BK) {
        a_window.move_right(STRIDE * T::BK);
        b_window.move_down(STRIDE * T::BK);
        a_share.load_at_once(a_window);  // behind the last tile: zeros, which nobody uses
        b_share.load_at_once(b_window);
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            const int next = (k + 1) % T::BK;
            if (next == 0) {
                stage ^= 1;
                a_share.store_transposed(shared.a[stage], place_in_a);
                b_share.store(shared.b[stage]);
                __syncthreads();  // the next tiles are complete, and nobody reads these any more
            }
            load_fragment<T::LANES_N>(&shared.b[stage][next][place.col], 0, b_fragment[(k + 1) % 2]);
            load_swizzled_fragment<T, VEC>(shared.a[stage], next, place.row, a_fragment[(k + 1) % 2]);
            multiply_fragments(a_fragment[k % 2], b_fragment[k % 2], sums);
        }
    }
}

}  // namespace gemm
