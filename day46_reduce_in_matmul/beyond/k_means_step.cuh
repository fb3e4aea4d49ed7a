// Day 46, beyond: one iteration of k-means. The assignment, which is nearly all of the work, is the
// fused reduction of reduce_in_matmul.cuh. This file has the kernels that follow it, each followed
// by its launch.
//
//   kernel             idea                                                        limited by
//   measure            sums of the distances, a part for each warp                 memory
//   add_points         each point adds itself to its centre's sums, as integers    atomic additions
//   move_to_means      a sum divided by the number of points                       memory
//
//   ./course run day46 --size 20000x100x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "k_means_step.hpp"
#include "reduce_in_matmul.cuh"

namespace day46 {

// Idea: the number of warps depends on n alone, not on the GPU. Each adds up its points in double.
// Cost removed: atomics, with which sums would differ from run to run.
// Still limits it: memory.
__global__ void measure(course::DeviceSpan<const float> squared_distances,
                        course::DeviceSpan<const std::uint32_t> assignment,
                        course::DeviceSpan<const std::uint32_t> before,
                        course::DeviceSpan<Progress> progress) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    double inertia = 0;
    unsigned changed = 0;
    for (std::size_t point = thread; point < assignment.size(); point += gridDim.x * blockDim.x) {
        inertia += static_cast<double>(squared_distances[point]);
        changed += assignment[point] != before[point] ? 1 : 0;
    }
    const auto plus = [](auto a, auto b) { return a + b; };
    inertia = course::warp_reduce(inertia, plus);
    changed = course::warp_reduce(changed, plus);
    if (threadIdx.x % course::kWarpSize == 0) progress[thread / course::kWarpSize] = {inertia, changed};
}

// A warp for each part.
inline void launch_measure(course::DeviceSpan<const float> squared_distances,
                           course::DeviceSpan<const std::uint32_t> assignment,
                           course::DeviceSpan<const std::uint32_t> before,
                           course::DeviceSpan<Progress> progress, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(progress.size() * course::kWarpSize, kThreads);
    measure<<<grid, kThreads, 0, stream>>>(squared_distances, assignment, before, progress);
}

// The sums of the points of each centre, k x d, in units of 1 / scale; and the number of points, k.
struct Sums {
    unsigned long long* coordinates;
    unsigned long long* points;
    double scale;
};

// Idea: a warp for each point adds its coordinates to the sums of its centre, as integers, whose
// sum does not depend on the order.
// Cost removed: floating-point atomics, whose last digits depend on the order; sorting the points.
// Still limits it: atomic additions. If there are few centres, many points contend for the same
// sums.
__global__ void add_points(course::DeviceMatrix<const float> points,
                           course::DeviceSpan<const std::uint32_t> assignment, Sums sums) {
    const std::size_t point = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / course::kWarpSize;
    if (point >= points.rows()) return;
    const std::size_t centre = assignment[point];
    const std::size_t lane = threadIdx.x % course::kWarpSize;
    for (std::size_t i = lane; i < points.cols(); i += course::kWarpSize) {
        const long long units = llrint(sums.scale * static_cast<double>(points(point, i)));
        // A negative number is its two's complement: the unsigned sum has the same bits.
        atomicAdd(&sums.coordinates[centre * points.cols() + i], static_cast<unsigned long long>(units));
    }
    if (lane == 0) atomicAdd(&sums.points[centre], 1ull);
}

// `sums` are 0 when it starts.
inline void launch_add_points(course::DeviceMatrix<const float> points,
                              course::DeviceSpan<const std::uint32_t> assignment, Sums sums,
                              cudaStream_t stream) {
    const unsigned grid = course::blocks_for(points.rows() * course::kWarpSize, kThreads);
    add_points<<<grid, kThreads, 0, stream>>>(points, assignment, sums);
}

// Idea: a thread for each coordinate of a centre.
// Cost removed: none that matters; the centres are few.
// Still limits it: memory.
__global__ void move_to_means(Sums sums, course::DeviceMatrix<const float> centres,
                              course::DeviceMatrix<float> moved) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= centres.rows() * centres.cols()) return;
    const unsigned long long points = sums.points[i / centres.cols()];
    const auto units = static_cast<double>(static_cast<long long>(sums.coordinates[i]));
    moved.data()[i] = points == 0 ? centres.data()[i]
                                  : static_cast<float>(units / static_cast<double>(points) / sums.scale);
}

inline void launch_move_to_means(Sums sums, course::DeviceMatrix<const float> centres,
                                 course::DeviceMatrix<float> moved, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(centres.rows() * centres.cols(), kThreads);
    move_to_means<<<grid, kThreads, 0, stream>>>(sums, centres, moved);
}

}  // namespace day46
