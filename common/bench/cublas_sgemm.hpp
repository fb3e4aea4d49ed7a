// The peer of products in single precision: cuBLAS, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/device/device_view.hpp"

namespace course {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// C = A B by cublasSgemm on the stream it is called with, in FP32 (no TF32). The handle is made
// now, not while timed. Where cuBLAS cannot run, an empty function.
std::function<void(cudaStream_t)> make_cublas_sgemm(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                                    DeviceMatrix<float> c);

}  // namespace course
