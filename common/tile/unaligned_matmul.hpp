// Products of 16-bit matrices whose rows the tensor memory accelerator cannot address, on Hopper.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/operands.hpp"

namespace course {

// Queues C = alpha op(A) op(B) + beta C, for each product of a batch: any alignment and leading
// dimension, strides or pointers. The arguments have been checked, C has elements, and the GPU has
// compute capability 9.0. T: __half or __nv_bfloat16.
template <class T>
void multiply_unaligned(const OperandsOf<T>& operands, const Batch<float>& c, float alpha, float beta,
                        cudaStream_t stream);

// The same with a given tile, below kUnalignedTiles, whatever the shape.
constexpr std::size_t kUnalignedTiles = 3;
template <class T>
void multiply_unaligned_with(std::size_t tile, const OperandsOf<T>& operands, const Batch<float>& c,
                             float alpha, float beta, cudaStream_t stream);

// An estimate of the time on this GPU, in microseconds.
double time_of_unaligned(const ProductShape& shape);

}  // namespace course
