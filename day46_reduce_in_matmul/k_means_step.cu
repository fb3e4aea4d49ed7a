// Day 46, the project: one iteration of k-means. The assignment, which is nearly all of the work,
// is the fused reduction of reduce_in_matmul.cuh. This file has the kernels that follow it.
//
//   kernel             idea                                                        limited by
//   measure            sums of the distances, a part for each warp                 memory
//   add_points         each point adds itself to its centre's sums, as integers    atomic additions
//   move_to_means      a sum divided by the number of points                       memory
//
//   ./course run day46 --size 20000x100x64
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "k_means_step.hpp"

namespace day46 {
namespace {

constexpr int kThreads = 256;
// A thread of measure() has this many points, or more if the grid would exceed kMostMeasuring
// blocks.
constexpr std::size_t kPointsOfThread = 32;
constexpr std::size_t kMostMeasuring = 128;

// --- Kernels -------------------------------------------------------------------------------------

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

// --- Launchers -----------------------------------------------------------------------------------

void require_size(std::size_t size, std::size_t expected, std::string_view name) {
    course::require(size == expected, "k-means step: ", name, " has ", size, " elements; expected ",
                    expected);
}

void require_packed(course::DeviceMatrix<const float> matrix, std::string_view name) {
    course::require(matrix.leading_dimension() == matrix.cols(), "k-means step: ", name,
                    " has a leading dimension of ", matrix.leading_dimension(), "; expected ", matrix.cols(),
                    ", no gaps between rows");
}

// How many units make 1: a power of two, so that multiplying by it is exact and only llrint()
// rounds. As large as possible while a sum of n numbers up to `largest` fits in 63 bits. With a
// million points a unit is at most 2^-41 of `largest`; the last digit of a float is 2^-23.
double units_for(std::size_t n, float largest) {
    int exponent = 0;  // largest < 2^exponent
    std::frexp(largest, &exponent);
    const int spare = 62 - static_cast<int>(std::bit_width(n));
    return std::ldexp(1.0, spare - exponent);
}

}  // namespace

std::size_t progress_parts(std::size_t n) {
    const std::size_t blocks = course::ceil_div(n, kThreads * kPointsOfThread);
    return std::clamp<std::size_t>(blocks, 1, kMostMeasuring) * (kThreads / course::kWarpSize);
}

Progress sum_of(std::span<const Progress> parts) {
    Progress sum{};
    for (const Progress& part : parts) {
        sum.inertia += part.inertia;
        sum.changed += part.changed;
    }
    return sum;
}

std::size_t update_scratch_size(const KMeansShape& shape) {
    return shape.k * shape.d + shape.k;
}

std::size_t step_scratch_size(const Reduce& reduce, const KMeansShape& shape) {
    return std::max(
        reduce.launcher.scratch_size({.m = shape.n, .n = shape.k, .d = shape.d, .metric = shape.metric}),
        update_scratch_size(shape));
}

void launch_assignment(const Reduce& reduce, const KMeansStep& step, cudaStream_t stream) {
    // A row of the product for each point, a column for each centre.
    reduce.launcher.launch(
        {.factors = {.a = {step.points}, .b = {step.centres}, .op_b = course::Op::kTranspose},
         .metric = step.metric,
         .values = step.squared_distances,
         .indices = step.assignment,
         .scratch = step.scratch},
        stream);
}

void launch_progress(const KMeansStep& step, cudaStream_t stream) {
    const std::size_t n = step.points.rows();
    require_size(step.before.size(), n, "before");
    require_size(step.assignment.size(), n, "assignment");
    require_size(step.squared_distances.size(), n, "squared_distances");
    require_size(step.progress.size(), progress_parts(n), "progress");
    const unsigned grid = course::blocks_for(step.progress.size() * course::kWarpSize, kThreads);
    measure<<<grid, kThreads, 0, stream>>>(step.squared_distances, step.assignment, step.before,
                                           step.progress);
    CUDA_CHECK_LAUNCH();
}

void launch_update(const KMeansStep& step, cudaStream_t stream) {
    const course::DeviceMatrix<const float>& points = step.points;
    const course::DeviceMatrix<const float>& centres = step.centres;
    const KMeansShape shape{.n = points.rows(), .k = centres.rows(), .d = centres.cols()};
    course::require(points.cols() == shape.d, "k-means step: points is ", points, " and centres ", centres,
                    "; expected as many columns");
    course::require(step.moved.rows() == shape.k && step.moved.cols() == shape.d, "k-means step: moved is ",
                    step.moved, "; expected ", shape.k, " x ", shape.d, ", as centres");
    require_packed(centres, "centres");
    require_packed(step.moved, "moved");
    require_size(step.assignment.size(), shape.n, "assignment");
    const std::size_t words = update_scratch_size(shape);
    course::require(step.scratch.size() >= words, "k-means step: scratch has ", step.scratch.size(),
                    " elements; expected at least ", words);
    course::require(std::isfinite(step.largest) && step.largest >= 0, "k-means step: largest is ",
                    step.largest, "; expected a finite number, at least 0");
    if (shape.k * shape.d == 0) return;

    auto* const words_of = reinterpret_cast<unsigned long long*>(step.scratch.data());
    const Sums sums{words_of, words_of + shape.k * shape.d, units_for(shape.n, step.largest)};
    CUDA_CHECK(cudaMemsetAsync(words_of, 0, words * sizeof(std::uint64_t), stream));
    if (shape.n > 0) {
        add_points<<<course::blocks_for(shape.n * course::kWarpSize, kThreads), kThreads, 0, stream>>>(
            points, step.assignment, sums);
        CUDA_CHECK_LAUNCH();
    }
    move_to_means<<<course::blocks_for(shape.k * shape.d, kThreads), kThreads, 0, stream>>>(sums, centres,
                                                                                            step.moved);
    CUDA_CHECK_LAUNCH();
}

void launch_step(const Reduce& reduce, const KMeansStep& step, cudaStream_t stream) {
    launch_assignment(reduce, step, stream);
    launch_progress(step, stream);
    launch_update(step, stream);
}

}  // namespace day46
