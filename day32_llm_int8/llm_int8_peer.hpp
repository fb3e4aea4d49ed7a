// cuBLAS, where the CUDA Toolkit is: the layer in half.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/device/device_view.hpp"

namespace day32 {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// Y = X W^T by cublasGemmEx in half, summed in float, packed matrices. The handle is made here, not
// while timed.
std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half> x,
                                                   course::DeviceMatrix<const __half> w,
                                                   course::DeviceMatrix<__half> y);

}  // namespace day32
