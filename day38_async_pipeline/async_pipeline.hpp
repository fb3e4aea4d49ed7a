// C = A B in single precision, any shape: the host API of day 38. No kernels here; they are in async_pipeline.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day38 {

// A is rows x depth, B is depth x cols, C is rows x cols. All row-major.
struct Shape {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t depth = 0;
};

// What a warp does, from one moment to the next.
enum class Activity : unsigned { kCopy, kWait, kMultiply, kEnd };

// "copy", "wait", "multiply", "end"
std::string_view name(Activity activity);

// From `time` on, the warp was at this. Times of one block are on one clock, that of its multiprocessor: cycles on a GPU, nanoseconds on
// the CPU stand-in; where they begin means nothing.
struct Stamp {
    unsigned warp;
    Activity activity;
    unsigned tile;  // of those along K
    long long time;
};

// One way to multiply.
struct Kernel {
    // Queues C = A B on `stream`. Leading dimensions are free; what lies between the end of a row and the next one is neither
    // read nor written. Any extent may be 0: an empty sum is 0. C must not overlap A or B.
    // Throws std::invalid_argument for shapes that do not fit together and for overlaps, CudaError when the launch fails.
    // Sources of the methods: PMPP, chapters 5 (shared tiles) and 6 (coarsening); CUDA C++ Programming Guide, "Asynchronous Data Copies".
    void (*launch)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                   course::DeviceMatrix<float> c, cudaStream_t stream);
    // The same, at once; and how the warps of block `block` have spent their time, warp by warp, in the order of time: of each
    // the first `most` stamps. Empty if there is no such block. Rows of A and B must be whole float4 at multiples of 16 bytes:
    // else std::invalid_argument.
    std::vector<Stamp> (*timeline)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                                   course::DeviceMatrix<float> c, unsigned block, unsigned most);
    // Registers, shared memory and occupancy, for aligned operands, on the current device.
    course::KernelResources (*resources)();
};

// The versions, in the order of the lesson.
using Pipeline = course::Variant<Kernel, Shape>;
std::span<const Pipeline> variants();

// The same on the CPU, in double: product[i * cols + j] = sum over k of a[i * depth + k] * b[k * cols + j], and in
// `magnitude` the sum of |a * b|, which is what rounding errors are measured by. Packed row-major.
// Throws std::invalid_argument when a length does not fit the shape.
void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude);

}  // namespace day38
