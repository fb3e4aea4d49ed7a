// cuBLAS's SYRK, SYMM and TRMM, where the CUDA Toolkit is.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "structured.hpp"

namespace gemm {

// Why cuBLAS cannot run here, or "".
std::string why_no_structured_peer();

// The same product by cublasSsyrk, cublasSsymm, cublasStrmm (with beta = 0 alone), on the stream
// that the function is called with. Empty where cuBLAS cannot run.
std::function<void(cudaStream_t)> make_cublas_syrk(const Syrk& problem);
std::function<void(cudaStream_t)> make_cublas_symm(const Symm& problem);
std::function<void(cudaStream_t)> make_cublas_trmm(const Trmm& problem);

}  // namespace gemm
