// Batched BF16 products by TMA and wgmma: the third version of batched_bfloat16.hpp.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "batched_bfloat16.hpp"

namespace day45 {

// Why TMA cannot load the operands, or "".
std::string why_no_tensor_maps(const course::OperandsOf<__nv_bfloat16>& operands);

// Queues the products of operands that it can load; C has elements. Throws CudaError if a call to
// CUDA fails.
void launch_wgmma(const Bfloat16Matmul& matmul, cudaStream_t stream);

// An estimate of the time on this GPU, in microseconds.
double time_of_wgmma(const course::ProductShape& shape);

// The same with a given tile, below kWgmmaTiles, for any shape.
constexpr std::size_t kWgmmaTiles = 4;
void launch_wgmma_with(std::size_t tile, const Bfloat16Matmul& matmul, cudaStream_t stream);

}  // namespace day45
