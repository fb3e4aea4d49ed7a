// cuBLAS and then a kernel, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "masked_matmul.hpp"

namespace day47 {

// The products by cublasSgemmStridedBatched, in FP32 (no TF32), then the second kernel of
// `unfused`. For bands, and batches with a stride. Where cuBLAS cannot run, an empty function.
std::function<void(cudaStream_t)> make_cublas_then_fill(const MaskedMatmul& matmul);

}  // namespace day47
