// C = A B in single precision, any shape: the host API of day 5. No kernels here; they are in matmul_tiled.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day05 {

// A is rows x depth, B is depth x cols, C is rows x cols. All row-major.
struct Shape {
    std::size_t rows, cols, depth;
};

// Queues C = A B on `stream`. Leading dimensions are free; what lies between the end of a row and the next one is neither
// read nor written. Any extent may be 0: an empty sum is 0. C must not overlap A or B.
// Throws std::invalid_argument for shapes that do not fit together and for overlaps, CudaError when the launch fails.
// Source of the method: PMPP, chapters 3 (naive), 5 (shared tiles) and 6 (coalescing, thread coarsening).
using Launcher = void (*)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                          course::DeviceMatrix<float> c, cudaStream_t stream);

// The versions, slow to fast.
using Matmul = course::Variant<Launcher, Shape>;
std::span<const Matmul> variants();

// The fastest that threads with one element each can be when both factors of every multiplication come from shared memory:
// the main loop of the 32 x 32 tiles alone, on tiles loaded once. Computes nothing of use; the rate is what it is for.
void launch_tile_limit(Shape shape, cudaStream_t stream);

// The same on the CPU, in double: product[i * cols + j] = sum over k of a[i * depth + k] * b[k * cols + j], and in
// `magnitude` the sum of |a * b|, which is what rounding errors are measured by. Packed row-major.
// Throws std::invalid_argument when a length does not fit the shape.
void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude);

}  // namespace day05
