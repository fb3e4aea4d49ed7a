// The peer of products with 16-bit factors: cuBLAS, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/bench/half_matmul.hpp"

namespace course::half_matmul {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// A call of cublasGemmEx for the same multiplication. The handle is made now, not while timed.
template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>& gemm);

}  // namespace course::half_matmul
