// Day 46, beyond: host code of one iteration of k-means. The kernels and their launches are in
// k_means_step.cuh.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "k_means_step.cuh"
#include "k_means_step.hpp"

namespace day46 {
namespace {

// A thread of measure() has this many points, or more if the grid would exceed kMostMeasuring
// blocks.
constexpr std::size_t kPointsOfThread = 32;
constexpr std::size_t kMostMeasuring = 128;

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
        {.operands = {.a = {step.points}, .b = {step.centres}, .op_b = course::Op::kTranspose},
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
    launch_measure(step.squared_distances, step.assignment, step.before, step.progress, stream);
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
        launch_add_points(points, step.assignment, sums, stream);
        CUDA_CHECK_LAUNCH();
    }
    launch_move_to_means(sums, centres, step.moved, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_step(const Reduce& reduce, const KMeansStep& step, cudaStream_t stream) {
    launch_assignment(reduce, step, stream);
    launch_progress(step, stream);
    launch_update(step, stream);
}

}  // namespace day46
