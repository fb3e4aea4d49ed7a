// The pipeline of day 31 as a function: A W^T of a block's tile, for int8 and for half. It is in
// the repository twice, because it is part of that day's lesson and cannot move to common/tile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/ptx.cuh"
#include "common/tile/byte_tile.cuh"

namespace day32 {

// Adds A W^T of a block's tile to the sums of its warps: the pipeline of day 31, for int8 and for
// half. `shared` has Shape::SHARED bytes, which may be used again when this returns.
template <class Shape, class Sum>
__device__ void multiply_tile(std::byte* shared, const course::ByteRows& a, const course::ByteRows& w,
                              course::ByteTileSums<Shape, Sum>& sums) {
    constexpr int STEPS = Shape::STEPS;
    const int stages = (a.bytes + Shape::BK - 1) / Shape::BK;
    if (stages == 0) return;
    const auto a_tile = [&](int stage) { return shared + stage * Shape::STAGE_BYTES; };
    const auto w_tile = [&](int stage) { return a_tile(stage) + Shape::BM * Shape::BK; };
    course::ByteTileCopies<Shape, Shape::BM> a_copies(a);
    course::ByteTileCopies<Shape, Shape::BN> w_copies(w);
    const auto copy = [&](int stage, int part) {
        a_copies.template issue<STEPS>(a_tile(stage), part);
        w_copies.template issue<STEPS>(w_tile(stage), part);
        if (part < STEPS - 1) return;
        course::ptx::cp_async_commit();
        a_copies.next_stage();
        w_copies.next_stage();
    };
    for (int stage = 0; stage < Shape::STAGES - 1; ++stage)
        for (int part = 0; part < STEPS; ++part)
            copy(stage, part);
    course::ptx::cp_async_wait<Shape::STAGES - 2>();
    __syncthreads();  // the first stage is complete

    course::ByteFragments<Shape> fragments[2];
    fragments[0].load(a_tile(0), w_tile(0), 0);
    int read = 0;  // the stage that fragments are loaded from
    for (int i = 0; i < stages; ++i) {
        const int write = read == 0 ? Shape::STAGES - 1 : read - 1;  // the stage that copies fill
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            copy(write, step);
            if (step == STEPS - 1) {
                read = read == Shape::STAGES - 1 ? 0 : read + 1;
                course::ptx::cp_async_wait<Shape::STAGES - 2>();
                __syncthreads();  // the next stage is complete, and this one is safe to overwrite
            }
            fragments[(step + 1) % 2].load(a_tile(read), w_tile(read), (step + 1) % STEPS);
            fragments[step % 2].multiply(sums);
        }
    }
    course::ptx::cp_async_wait<0>();
    __syncthreads();
}

}  // namespace day32
