// cuBLAS, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "tensor_cores.hpp"

namespace day40 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// A call of cublasGemmEx that does the same multiplication: T in, sums and C in single precision. Its handle is made here, not where it is timed.
template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>& gemm);

}  // namespace day40
