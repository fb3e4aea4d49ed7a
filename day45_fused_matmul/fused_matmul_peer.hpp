// cuBLAS, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "beyond/batched_bfloat16.hpp"
#include "fused_matmul.hpp"

namespace day45 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// A call of cublasSgemmStridedBatched that does the same products in FP32 (no TF32), of batches
// with a stride. Its handle is made here, not where it is timed. Where cuBLAS cannot run, an empty
// function.
std::function<void(cudaStream_t)> make_cublas(const BatchedMatmul& matmul);

// The same of BF16 matrices, with cublasGemmStridedBatchedEx: on tensor cores, sums and C in FP32.
std::function<void(cudaStream_t)> make_cublas(const Bfloat16Matmul& matmul);

}  // namespace day45
