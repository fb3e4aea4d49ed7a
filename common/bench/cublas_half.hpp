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

// C = A B with a C of T. Sums are in FP32 and each is rounded once, also where cuBLAS splits K.
template <class T>
std::function<void(cudaStream_t)> make_cublas(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                                              const DeviceMatrix<T>& c);

}  // namespace course::half_matmul
