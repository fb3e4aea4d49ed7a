// cuBLAS's library for matrices of few bits, cublasLt, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "eight_bits.hpp"

namespace day42 {

// Why there is no cublasLt in this build, or "".
std::string why_no_cublaslt();

// Of FP8: whether sums are promoted to single precision on the way, cublasLt's default, or stay in the tensor cores.
enum class Accumulation { kPromoted, kFast };

// A call of cublasLtMatmul that does the same multiplication. T: std::int8_t or __nv_fp8_e4m3; it asks for B as N x K, too. Handle, workspace and
// its choice among its kernels are made here. Throws std::invalid_argument when it has no kernel for these operands.
template <class T>
std::function<void(cudaStream_t)> make_cublaslt(const Product<T>& product, Accumulation accumulation);

}  // namespace day42
