// cuBLAS, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "int8_matmul.hpp"

namespace day31 {

// Why cuBLAS cannot run this shape here, or "". It requires k and n to be multiples of 4.
std::string cublas_constraint(const MatmulShape& shape);

// C = A W^T by cublasGemmEx with CUBLAS_COMPUTE_32I, packed matrices. The handle is made here, not
// while timed.
std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t> a,
                                                   course::DeviceMatrix<const std::int8_t> w,
                                                   course::DeviceMatrix<std::int32_t> c);

}  // namespace day31
