// C = A B in single precision, any shape: the host API of day 5. The kernels are in
// matmul_tiled.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day05 {

// A is rows x depth, B is depth x cols, C is rows x cols. All row-major.
struct Shape {
    std::size_t rows, cols, depth;
};

// Enqueues C = A B on `stream`. Any leading dimension; what lies between the end of a row and the
// next row is neither read nor written. Any extent may be 0: an empty sum is 0. C must not overlap
// A or B. Throws std::invalid_argument for shapes that do not fit together and for overlaps,
// CudaError when a launch fails. Source of the method: PMPP, chapters 3 (naive), 5 (shared tiles),
// 6 (coalescing, thread coarsening).
using Launcher = void (*)(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                          course::DeviceMatrix<float> c, cudaStream_t stream);

// The versions, slow to fast.
using Matmul = course::Version<Launcher, Shape>;
std::span<const Matmul> versions();

// The reference, in double: product[i * cols + j] is the sum over k of a[i * depth + k] * b[k *
// cols + j], and magnitude[i * cols + j] the sum of |a * b|, which bounds the rounding error.
// Packed row-major. Throws std::invalid_argument when a length does not fit the shape.
void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude);

}  // namespace day05
