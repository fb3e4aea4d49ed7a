// cuBLAS as the peer of matrix products in single precision, where the CUDA Toolkit is installed.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"

namespace course {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// C = A B by cublasSgemm on the stream that it is called with, in FP32 (no TF32). The handle is
// created now, so its creation is not timed. Returns an empty function where cuBLAS cannot run.
std::function<void(cudaStream_t)> make_cublas_sgemm(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                                    DeviceMatrix<float> c);

// The same for C[i] = alpha op(A[i]) op(B[i]) of batches with a stride, by
// cublasSgemmStridedBatched.
std::function<void(cudaStream_t)> make_cublas_sgemm(const Operands& operands, const Batch<float>& c,
                                                    float alpha = 1);

}  // namespace course
