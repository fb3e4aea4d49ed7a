// C = alpha A B + beta C in single precision, any shape: the host API of the ladder. No kernels
// here: each of the eleven steps has a file in steps/, and the versions after them are in beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace gemm {

// C is m x n, A is m x k, B is k x n.
struct Shape {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// Device memory that a step needs besides its operands; scratch.hpp allocates it.
struct Scratch {
    // Sums of parts of K. A launch does not read what an earlier one has left in them.
    course::DeviceSpan<float> partial;
    // All zero before a launch, and again after it.
    course::DeviceSpan<unsigned> tickets;
};

struct ScratchSize {
    std::size_t partial = 0;
    std::size_t tickets = 0;
};

// One multiplication. Row-major, with leading dimensions (those of the views). Conventions of the
// BLAS:
// - beta = 0: C is written, not read; NaN in it does not matter;
// - alpha = 0: A and B are not read.
struct Sgemm {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<const float> b;
    course::DeviceMatrix<float> c;
    float alpha = 1;
    float beta = 0;
    // For steps that ask for it (Kernel::scratch). Two launches that may run at the same time must
    // not share it.
    Scratch scratch{};

    __host__ __device__ std::size_t m() const { return c.rows(); }
    __host__ __device__ std::size_t n() const { return c.cols(); }
    __host__ __device__ std::size_t k() const { return a.cols(); }
};

// What it takes to run a step.
struct Kernel {
    // Queues the multiplication. Throws std::invalid_argument when shapes do not match, C overlaps
    // A or B, or the scratch memory is too small; CudaError when a call to CUDA fails.
    void (*launch)(const Sgemm& gemm, cudaStream_t stream);
    // Registers, shared memory and occupancy of its kernel for aligned operands, on the current
    // device.
    course::KernelResources (*resources)();
    ScratchSize (*scratch)(const Shape& shape) = [](const Shape&) { return ScratchSize{}; };
};

using Step = course::Version<Kernel, Shape>;

// The eleven, "01_naive" to "11_split_k". A letter after the number, as in "09b_larger_bk", marks a
// version that prepares the step: it changes one thing of several.
std::span<const Step> steps();

// The versions after them, from "12_multi_stage" on.
std::span<const Step> beyond();

// Checks the arguments. If alpha or K is 0, returns a problem with both 0: kernels then read
// neither A nor B. Throws std::invalid_argument when shapes do not match, or C overlaps A or B.
Sgemm checked(const Sgemm& gemm);

// The same. It also throws std::invalid_argument when the scratch memory is smaller than `needed`,
// or does not start at a multiple of 16 bytes.
Sgemm checked(const Sgemm& gemm, const ScratchSize& needed);

// The reference: plain loops in double, over the host's cores. Packed, row-major: a is m x k, b is
// k x n.
//   product:    alpha a b + beta product, element by element (beta = 0: product is not read)
//   magnitude:  |alpha| |a| |b| + |beta product|, which bounds the rounding errors of that sum
// Throws std::invalid_argument when a length does not match the shape.
void multiply_on_cpu(const Shape& shape, float alpha, std::span<const float> a, std::span<const float> b,
                     float beta, std::span<double> product, std::span<double> magnitude);

}  // namespace gemm
