// cuBLAS, where the CUDA Toolkit is: the int8 product, and the layer in half.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "int8_matmul.hpp"
#include "llm_int8.hpp"

namespace day30 {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// C = A W^T by cublasGemmEx with CUBLAS_COMPUTE_32I, packed matrices. The handle is made now, not while timed. cuBLAS wants k and n to be
// multiples of 4: cublas_int8_constraint() says why a shape cannot run, or "".
std::string cublas_int8_constraint(const MatmulShape& shape);
std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t> a,
                                                   course::DeviceMatrix<const std::int8_t> w,
                                                   course::DeviceMatrix<std::int32_t> c);

// Y = X W^T by cublasGemmEx in half, summed in float.
std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half> x,
                                                   course::DeviceMatrix<const __half> w,
                                                   course::DeviceMatrix<__half> y);

}  // namespace day30
