// Step 0: cuBLAS, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "sgemm.hpp"

namespace gemm {

// Why cuBLAS cannot run here, or "".
std::string why_no_cublas();

// C = alpha A B + beta C by cublasSgemm on the stream it is called with. Its default mode, FP32
// without tensor cores, unless `tf32`: then the fast mode that rounds the operands to 10 bits. The
// handle is made now, not while timed.
std::function<void(cudaStream_t)> make_cublas(const Sgemm& gemm, bool tf32 = false);

}  // namespace gemm
