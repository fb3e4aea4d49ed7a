// Products of 8-bit matrices, summed in 32 bits: C[m][n] = sum over k of A[m][k] W[n][k]. A is M x
// K and W is N x K, so both are read along K: a layer's weights W[out][in] as they lie in memory.
// The sums are exact.
//
// Methods: the integer instructions of CUDA cores (__dp4a) and of tensor cores (PTX ISA,
// mma.m16n8k32 with .s8); tiles as in PMPP chapters 5 and 6. The kernels are in int8_matmul.cuh and
// beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day31 {

struct MatmulShape {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// K * (-128)^2 must fit in 31 bits.
inline constexpr std::size_t kLongestSum = 131071;

// Queues C = A W^T on `stream`. m, n and k may be anything, k up to kLongestSum; any leading
// dimension and alignment. mma_sync and tensor_cores require 16-byte aligned rows of A and W, and a
// GPU of compute capability 8.0 or more with enough shared memory (their constraint names what is
// missing); wgmma, such rows and compute capability 9.0. C must not overlap A or W.
// std::invalid_argument for arguments unlike that, CudaError when the launch fails.
struct Launcher {
    void (*launch)(course::DeviceMatrix<const std::int8_t> a, course::DeviceMatrix<const std::int8_t> w,
                   course::DeviceMatrix<std::int32_t> c, cudaStream_t stream);
    course::KernelResources (*resources)() = nullptr;
    bool needs_aligned_rows = false;
};
using Version = course::Version<Launcher, MatmulShape>;

// scalar, dp4a, mma_sync, tensor_cores, wgmma, and `auto`: the last of them that GPU and rows
// allow, dp4a elsewhere.
std::span<const Version> versions();

// The same on the CPU, packed. std::invalid_argument when a length does not match the shape.
void int8_matmul_on_cpu(const MatmulShape& shape, std::span<const std::int8_t> a,
                        std::span<const std::int8_t> w, std::span<std::int32_t> c);

}  // namespace day31
