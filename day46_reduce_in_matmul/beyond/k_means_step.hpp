// One iteration of k-means, in device memory: points are assigned to the nearest centres, and the
// centres moved to the means of their points.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/device/device_view.hpp"
#include "common/tile/distance.hpp"
#include "reduce_in_matmul.hpp"

namespace day46 {

// A part of an iteration's progress: one of several partial sums.
struct Progress {
    double inertia;         // squared distances to the own centres
    std::uint64_t changed;  // points that are assigned to another centre than before
};
// The number of parts for n points.
std::size_t progress_parts(std::size_t n);
Progress sum_of(std::span<const Progress> parts);

struct KMeansStep {
    course::DeviceMatrix<const float> points{};   // n x d, packed
    course::DeviceMatrix<const float> centres{};  // k x d, packed
    float largest = 0;                            // no coordinate of a point is further away from 0
    course::Metric metric = course::Metric::kSquaredL2;
    course::DeviceSpan<const std::uint32_t> before{};  // n: the previous assignment, any numbers
    course::DeviceSpan<std::uint32_t> assignment{};    // n
    course::DeviceSpan<float> squared_distances{};     // n: to the own centres
    course::DeviceSpan<Progress> progress{};           // progress_parts(n)
    course::DeviceMatrix<float> moved{};          // k x d, packed: the means; a centre without points stays
    course::DeviceSpan<std::uint64_t> scratch{};  // at least scratch_size() elements, any content
};

struct KMeansShape {
    std::size_t n = 0, k = 0, d = 0;
    course::Metric metric = course::Metric::kSquaredL2;
};

// Each queues its part; launch_step() all three, one after the other. They throw
// std::invalid_argument when sizes do not match, CudaError if a call to CUDA fails.
void launch_assignment(const Reduce& reduce, const KMeansStep& step, cudaStream_t stream);
void launch_progress(const KMeansStep& step, cudaStream_t stream);
// Every assignment must be less than k.
void launch_update(const KMeansStep& step, cudaStream_t stream);
void launch_step(const Reduce& reduce, const KMeansStep& step, cudaStream_t stream);

// Elements of scratch memory of all parts, on the current device; and of the update alone.
std::size_t step_scratch_size(const Reduce& reduce, const KMeansShape& shape);
std::size_t update_scratch_size(const KMeansShape& shape);

}  // namespace day46
