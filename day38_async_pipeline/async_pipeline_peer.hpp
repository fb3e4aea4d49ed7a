// The peer of day 38: cuBLAS, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/device_view.hpp"

namespace day38 {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// C = A B by cublasSgemm on the stream it is called with, in FP32 (no TF32). The handle is made now, not while timed.
std::function<void(cudaStream_t)> make_cublas(course::DeviceMatrix<const float> a,
                                              course::DeviceMatrix<const float> b,
                                              course::DeviceMatrix<float> c);

}  // namespace day38
