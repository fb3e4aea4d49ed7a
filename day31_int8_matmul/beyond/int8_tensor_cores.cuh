// Day 31, beyond: the tensor cores, by mma.sync as on day 40. common/tile/byte_tile.cuh has a tile
// of bytes, its copies and its fragments.
//
//   version        multiply-adds by     what is new                               what limits it
//   mma_sync       4,096 in an mma      tensor cores                              copies and products take turns
//   tensor_cores   4,096 in an mma      stages in flight, fragments a step ahead  the rate of mma.sync
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/byte_tile.cuh"
#include "int8_matmul.cuh"

namespace day31 {

// Stores a thread's sums directly from registers, two adjacent ones at a time if C allows it.
template <class Shape>
__device__ void store_sums(DeviceMatrix<std::int32_t> c, const course::TileOrigin& origin,
                           const course::ByteTileSums<Shape, int>& sums) {
    const bool pairs = c.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(c.data()) % 8 == 0;
    course::for_each_pair<Shape>([&](int i, int j, int pair, int row, int col) {
        const int* const sum = &sums[i][j][pair];
        const std::size_t r = origin.row + row;
        const std::size_t s = origin.col + col;
        if (r >= c.rows() || s >= c.cols()) return;
        if (pairs && s + 1 < c.cols()) {
            *reinterpret_cast<int2*>(&c(r, s)) = make_int2(sum[0], sum[1]);
        } else {
            c(r, s) = sum[0];
            if (s + 1 < c.cols()) c(r, s + 1) = sum[1];
        }
    });
}

using OneStage = course::ByteTileShape<128, 128, 64, 64, 1>;

// Idea: mma.m16n8k32. A warp multiplies 16 x 32 by 32 x 8 bytes in one instruction. Both operands
// are K-major, so ldmatrix does not have to transpose, which it could not do for bytes.
// Cost removed: instructions. 4,096 multiply-adds in one, where a warp's __dp4a does 128.
// Still limits it: latency. The tensor cores idle while a tile is copied (counters: 54 % busy).
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    mma_sync(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
             DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    const course::ByteRows a_rows = course::byte_rows(a, origin.row);
    const course::ByteRows w_rows = course::byte_rows(w, origin.col);
    course::ByteTileCopies<Shape, Shape::BM> a_copies(a_rows);
    course::ByteTileCopies<Shape, Shape::BN> w_copies(w_rows);
    std::byte* const a_tile = shared;
    std::byte* const w_tile = shared + Shape::BM * Shape::BK;

    course::ByteTileSums<Shape, int> sums = {};
    for (int done = 0; done < a_rows.bytes; done += Shape::BK) {
        a_copies.template issue<1>(a_tile, 0);
        w_copies.template issue<1>(w_tile, 0);
        a_copies.next_stage();
        w_copies.next_stage();
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete
        for (int step = 0; step < Shape::STEPS; ++step) {
            course::ByteFragments<Shape> fragments;
            fragments.load(a_tile, w_tile, step);
            fragments.multiply(sums);
        }
        __syncthreads();  // safe to overwrite
    }
    store_sums<Shape>(c, origin, sums);
}

template <class Shape>
void launch_mma_sync(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                     DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), Shape::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), Shape::BN);
    const unsigned grid = course::blocks_for(tiles_m * tiles_n, 1);
    course::launch(mma_sync<Shape>, {grid, Shape::THREADS, Shape::SHARED, stream}, a, w, c,
                   static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

// The pipeline, for a block's tile. While the tensor cores work on one step, the fragments of the
// next step are loaded, and a quarter of the copies for a later stage is issued. (If they were all
// issued at once, the copies would delay the fragments.) `shared` has Shape::SHARED bytes.
template <class Shape>
__device__ void multiply_tile(std::byte* shared, const course::ByteRows& a, const course::ByteRows& w,
                              course::ByteTileSums<Shape, int>& sums) {
    constexpr int STEPS = Shape::STEPS;
    const int stages = (a.bytes + Shape::BK - 1) / Shape::BK;
    if (stages == 0) return;
    const auto a_tile = [&](int stage) { return shared + stage * Shape::STAGE_BYTES; };
    const auto w_tile = [&](int stage) { return a_tile(stage) + Shape::BM * Shape::BK; };
    course::ByteTileCopies<Shape, Shape::BM> a_copies(a);
    course::ByteTileCopies<Shape, Shape::BN> w_copies(w);
    // After the last stage nothing is left to copy, but the groups are committed nevertheless, so
    // that cp_async_wait can count them.
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
    __syncthreads();  // no copy is in flight: shared memory may be used again
}

// Two blocks fit on an SM: one multiplies while the other stores its results.
using ThreeStages = course::ByteTileShape<128, 128, 64, 64, 3>;

// Idea: a multistage pipeline, multiply_tile() above.
// Cost removed: the latency of global and of shared memory.
// Still limits it: mma.sync takes its operands from registers. Hopper's wgmma reads them from
// shared memory.
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    tensor_cores(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                 DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    course::ByteTileSums<Shape, int> sums = {};
    multiply_tile<Shape>(shared, course::byte_rows(a, origin.row), course::byte_rows(w, origin.col), sums);
    store_sums<Shape>(c, origin, sums);
}

template <class Shape>
void launch_tensor_cores(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                         DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), Shape::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), Shape::BN);
    const unsigned grid = course::blocks_for(tiles_m * tiles_n, 1);
    course::launch(tensor_cores<Shape>, {grid, Shape::THREADS, Shape::SHARED, stream}, a, w, c,
                   static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

}  // namespace day31
