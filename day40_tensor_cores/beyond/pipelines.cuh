// Day 40, beyond: pipelines. The instructions and fragments are those of tensor_cores.cuh. What
// changes is when data arrives, first a tile in shared memory, then a fragment in registers.
//
//   version          block      warp     stages  what is new               what limits it
//   multi_stage      128 x 256  64 x 64  3       two stages in flight      tensor cores; start of a step
//   fragments_ahead  128 x 256  64 x 64  3       fragments 16 of K ahead   tensor cores, power
//
// A block has 144 KB of shared memory, more than the 48 KB that every kernel may have:
// course::launch() opts in. Day 41 continues with Hopper's own instructions.
#pragma once

#include <type_traits>

#include "common/device/launch.hpp"
#include "tensor_cores.cuh"

namespace day40 {

constexpr int kStages = 3;

template <class T>
using LargeShape = TileShape<T, 128, 256, 64, 64, true>;

// Idea: a multistage pipeline, two tiles in flight while one is multiplied; and 64 x 64 results per
// warp.
// Cost removed: the latency of global memory, and one of two barriers per tile.
// Still limits it: tensor cores, 67 % busy (counters). The rest is the start of a step: all warps
// synchronise at the barrier, then issue copies and
// load fragments at the same time, while the tensor cores idle.
template <class T, bool kAligned>
__global__ void __launch_bounds__(LargeShape<T>::THREADS)
    multi_stage(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = LargeShape<T>;
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(a.cols(), S::BK));
    const auto copy = [&](int step) {
        if (step < steps) loader.copy_to(stages[step % kStages]);
        // After the last tile, an empty group, so that the count is constant.
        course::ptx::cp_async_commit();
    };

    Sums<S> sums = {};
    for (int step = 0; step < kStages - 1; ++step)
        copy(step);
    for (int step = 0; step < steps; ++step) {
        course::ptx::cp_async_wait<kStages - 2>();
        __syncthreads();  // the tile is complete, and the previous one is safe to overwrite
        copy(step + kStages - 1);
        multiply_tile<S>(stages[step % kStages], tile, sums);
    }
    store_sums<S>(out, tile, sums);
}

template <class T, bool kAligned>
void launch_multi_stage(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                        cudaStream_t stream) {
    using S = LargeShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    course::launch(multi_stage<T, kAligned>,
                   {course::blocks_of(order), S::THREADS, kStages * sizeof(Stage<S>), stream}, a, b, out,
                   order);
}

// Idea: fragments 16 of K ahead. While 16 of K are multiplied, the fragments of the next 16 are
// loaded, even if they are in the next stage. Loads, copies and MMAs are independent and unrolled,
// so the compiler issues copies between MMAs.
// Cost removed: the idle start of each step.
// Still limits it: mma.sync takes its operands from registers; and power (counters: tensor cores 83
// % busy at 1.76 of 1.98 GHz).
template <class T, bool kAligned>
__global__ void __launch_bounds__(LargeShape<T>::THREADS)
    fragments_ahead(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = LargeShape<T>;
    static_assert(S::BK % 32 == 0, "every step begins with fragments[0]");
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int depth = static_cast<int>(a.cols());

    // A and B are copied in different quarters of a step. `in_range`: the tile is known to be, so
    // bounds are not checked.
    const auto copy_a = [&](auto in_range, int stage) {
        loader.a.template to<kAligned, in_range>(stages[stage].a);
        loader.a.next_columns();
    };
    const auto copy_b = [&](auto in_range, int stage) {
        loader.b.template to<kAligned, in_range>(stages[stage].b);
        loader.b.next_rows();
        course::ptx::cp_async_commit();
    };
    for (int stage = 0; stage < kStages - 1; ++stage) {
        copy_a(std::false_type(), stage);
        copy_b(std::false_type(), stage);
    }
    course::ptx::cp_async_wait<kStages - 2>();
    __syncthreads();

    Sums<S> sums = {};
    Fragments<S> fragments[2];
    load_fragments(fragments[0], stages[0], tile, 0);
    int read = 0;             // the stage that fragments are loaded from
    int write = kStages - 1;  // the stage that copies fill
    const auto step = [&](auto in_range) {
#pragma unroll
        for (int k = 0; k < S::BK; k += 16) {
            if (k + 16 == S::BK) {  // the last quarter: its fragments are in registers
                course::ptx::cp_async_wait<kStages - 2>();
                __syncthreads();  // the next stage is complete, and this one is safe to overwrite
                write = read;
                read = read + 1 < kStages ? read + 1 : 0;
            }
            load_fragments(fragments[(k / 16 + 1) % 2], stages[read], tile, (k + 16) % S::BK);
            if (k == 0) copy_a(in_range, write);
            if (k == 16) copy_b(in_range, write);
            multiply_fragments<S>(fragments[k / 16 % 2], sums);
        }
    };
    const bool tile_in_range = kAligned && static_cast<int>(a.rows()) - tile.first_row >= S::BM &&
                               static_cast<int>(b.cols()) - tile.first_col >= S::BN;
    int done = 0;
    for (; tile_in_range && done + kStages * S::BK <= depth; done += S::BK)
        step(std::true_type());
    for (; done < depth; done += S::BK)
        step(std::false_type());
    course::ptx::cp_async_wait<0>();  // zero-filled stages after the last one are still in flight
    store_sums<S>(out, tile, sums);
}

template <class T, bool kAligned>
void launch_fragments_ahead(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                            cudaStream_t stream) {
    using S = LargeShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    course::launch(fragments_ahead<T, kAligned>,
                   {course::blocks_of(order), S::THREADS, kStages * sizeof(Stage<S>), stream}, a, b, out,
                   order);
}

}  // namespace day40
