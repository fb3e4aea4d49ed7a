// C = A B in single precision, any shape: the host API of day 38. The kernels are in
// async_pipeline.cuh and beyond/producer_warps.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "timeline.hpp"

namespace day38 {

// A is rows x depth, B is depth x cols, C is rows x cols. All row-major.
struct Shape {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t depth = 0;
};

// What a version offers.
struct Kernel {
    // Enqueues C = A B on `stream`. Any leading dimensions; the padding of rows is neither read nor
    // written. Any extent may be 0: an empty sum is 0. C must not overlap A or B. Throws
    // std::invalid_argument for shapes that do not match and for overlaps, CudaError when the
    // launch fails.
    // Methods: PMPP, chapters 5 (tiling) and 6 (thread coarsening); CUDA C++ Programming Guide,
    // "Asynchronous Data Copies".
    void (*launch)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                   course::DeviceMatrix<float> c, cudaStream_t stream);
    // Runs the same product and returns what the warps of block `block` did: the first `most`
    // stamps of each warp, warp by warp, in order of time. Empty if there is no such block. Throws
    // std::invalid_argument unless the rows of A and B are whole float4s, 16-byte aligned.
    std::vector<Stamp> (*timeline)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                                   course::DeviceMatrix<float> c, unsigned block, unsigned most);
    // Registers, shared memory and occupancy, for aligned operands, on the current device.
    course::KernelResources (*resources)();
};

// The versions, in the order of the lesson.
using Pipeline = course::Version<Kernel, Shape>;
std::span<const Pipeline> versions();

// The reference, in double: product[i * cols + j] = sum over k of a[i * depth + k] * b[k * cols +
// j], and in
// `magnitude` the sum of |a * b|, which error bounds are relative to. Packed row-major.
// Throws std::invalid_argument when a length does not fit the shape.
void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude);

}  // namespace day38
