// The main loop of fused matrix products: a block multiplies one tile after the other. It is the
// loop that day 45 teaches (multiply_tiles_in_turn) with three parameters. TileLoader (loader.cuh)
// is the CopiesAhead of that day.
//
//     walk    which tiles this block takes, in order (day 45: every gridDim.x-th). If it has
//             is_idle(), a warp skips the multiply-adds of tiles for which that returns true
//     add     what a pair of operands adds to a sum: their product (day 45), or a squared difference
//     take    the epilogue of the kernel, called with each finished tile (day 45: it stores C)
//
// The copies do not stop at the end of a tile. While the last steps of a tile are multiplied, and
// while it is taken, the first steps of the next one are in flight: the pipeline fills only once.
#pragma once

#include <cuda_runtime.h>

#include "common/device/operands.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/tile_shape.cuh"

namespace course {

// True: this warp skips the multiply-adds of the tile. Most walks have no idle warps.
template <class Walk>
__device__ bool is_idle(const Walk& walk, unsigned tile) {
    if constexpr (requires { walk.is_idle(tile); }) {
        return walk.is_idle(tile);
    } else {
        return false;
    }
}

// All threads of the block call it. `stages`: T::STAGES in shared memory.
template <class T, class LoaderA, class LoaderB, class Walk, class Add, class Take>
__device__ void multiply_tiles(const Operands& operands, const Walk& walk, Stage<T>* stages, const Add& add,
                               Take take) {
    static_assert(T::STAGES >= 2, "multiply_tiles: one stage to multiply and at least one in flight");
    static_assert(T::BK % 2 == 0,
                  "multiply_tiles: BK must be even: the ping-pong buffer is back at 0 when a step ends");
    constexpr int AHEAD = T::STAGES - 1;  // steps in flight or complete
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    TileLoader<T, LoaderA, LoaderB, Walk> copies(operands, walk);
    for (int stage = 0; stage < AHEAD; ++stage) {
        copies.template start<false>(stages[stage]);
        copies.move_on(1);
    }
    ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    Fragments<T> fragments[2];
    fragments[0].read(stages[0], 0, place);
    int now = 0;
    int free = AHEAD;
    // An idle warp only copies and meets the others at the barrier.
    const auto multiply_step = [&](bool idle, float(&sums)[T::TM][T::TN], auto start_copies) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                start_copies(stages[free]);
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete; this one is safe to overwrite
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
            if (idle) continue;
            multiply_and_read_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[now],
                                       (k + 1) % T::BK, place, add);
        }
        if (idle) fragments[0].read(stages[now], 0, place);
    };
    for (unsigned tile = walk.first(); walk.has(tile); tile = walk.next(tile)) {
        const bool idle = is_idle(walk, tile);
        float sums[T::TM][T::TN] = {};
        for (int left = copies.steps(); left > 0;) {
            const int whole = min(copies.whole_steps(), left);
#pragma unroll 1
            for (int step = 0; step < whole; ++step)
                multiply_step(idle, sums, [&](Stage<T>& stage) { copies.template start<true>(stage); });
            copies.move_on(whole);
            left -= whole;
            if (whole > 0) continue;
            multiply_step(idle, sums, [&](Stage<T>& stage) { copies.template start<false>(stage); });
            copies.move_on(1);
            --left;
        }
        take(walk.at(tile), sums);
    }
    ptx::cp_async_wait<0>();
}

}  // namespace course
