// cuBLAS, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "fused_matmul.hpp"

namespace day45 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// A call of cublasSgemmStridedBatched that does the same products in FP32 (no TF32), of batches with a stride. Its handle is made here,
// not where it is timed. Where cuBLAS cannot run, an empty function.
std::function<void(cudaStream_t)> make_cublas(const BatchedMatmul& matmul);

}  // namespace day45
