// The swizzle of step 10: A's tile in shared memory so that neither its transposed stores nor the loads of fragments meet in a bank.
#pragma once

#include <cuda_runtime.h>

#include "common/device/pack.cuh"
#include "thread_tile.cuh"

namespace gemm {

// Where row `row` of A stands in row k of its tile. One store of a warp has BK / VEC packs side by side of 32 * VEC / BK rows: the rows
// of each pack go to banks of their own.
template <int BK, int VEC>
constexpr __device__ int swizzled(int k, int row) {
    static_assert(32 * VEC % BK == 0, "swizzled: one store of a warp has whole rows of A's tile");
    static_assert(32 % (BK / VEC) == 0, "swizzled: the packs of a row must be a power of two, at most 32");
    return row ^ (k / VEC * (32 * VEC / BK));
}

// load_fragment() of row k of A's tile, for the lane whose rows begin at `row`.
//
// An XOR by less than 4 exchanges elements of a float4: by which register gets which of them, it is undone for nothing. What exchanges
// float4 of one lane (from ROUND on) is known to the compiler as well. Only what is left depends on the lane.
template <class T, int VEC>
__device__ void load_swizzled_fragment(const float (&tile)[T::BK][T::BM], int k, int row,
                                       float (&fragment)[T::TM]) {
    constexpr int ROUND = T::LANES_M * 4;  // rows of all lanes' first float4
    static_assert((ROUND & (ROUND - 1)) == 0, "load_swizzled_fragment: WM / TM must be a power of two");
    static_assert(T::WM % 32 == 0,
                  "load_swizzled_fragment: the XOR, less than 32, must stay in a warp's tile");
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) {
        const int place = swizzled<T::BK, VEC>(k, place_of<T::LANES_M>(0, i));
        const int in_round = place % ROUND / 4 * 4;
        const auto four = course::Pack<float, 4>::load(&tile[k][(row ^ in_round) + place / ROUND * ROUND]);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            fragment[i + j] = four.value[place % 4 ^ j];
    }
}

}  // namespace gemm
