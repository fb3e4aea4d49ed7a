// Many products of matrices at once: the host API of day 45. No kernels here.
//
//     C[i] = alpha op(A[i]) op(B[i]) + beta C[i]        i = 0 ... count - 1, each of them m x n, in single precision
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "batched_matmul.hpp"
#include "common/bench/version.hpp"
#include "common/device/operands.hpp"

namespace day45 {

using Shape = course::ProductShape;

// Queues the products on `stream`. Any shape, also empty ones. Throws std::invalid_argument when
// shapes or counts do not match, or the C of a strided batch overlap each other, A or B; CudaError
// if a call to CUDA fails. Arrays of pointers are not checked.
using Launcher = void (*)(const BatchedMatmul& matmul, cudaStream_t stream);

// "one_thread_each" to "fitted".
using Batched = course::Version<Launcher, Shape>;
std::span<const Batched> versions();

// The version that "fitted" is for these products, on a device of so many multiprocessors:
// "pipelined", or one of those named after a tile.
std::string tile_for(const Shape& shape, std::size_t multiprocessors);

// The reference, packed and row after row: op(A) is m x k, op(B) k x n. As
// course::multiply_on_cpu(), for each product of the batch.
void multiply_on_cpu(const Shape& shape, float alpha, std::span<const float> a, std::span<const float> b,
                     float beta, std::span<double> product, std::span<double> magnitude);

}  // namespace day45
