// cuBLAS as the peer of matrix products with 16-bit operands, where the CUDA Toolkit is installed.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/bench/half_matmul.hpp"

namespace course::half_matmul {

// Why this build has no cuBLAS, or "".
std::string why_no_cublas();

// A call of cublasGemmEx for the same multiplication. The handle is created now, so its creation
// is not timed.
template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>& gemm);

}  // namespace course::half_matmul
