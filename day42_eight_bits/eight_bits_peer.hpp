// The peer: cublasLt, cuBLAS's interface to products of 8-bit operands.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "eight_bits.hpp"

namespace day42 {

// Why there is no cublasLt in this build, or "".
std::string why_no_cublaslt();

// FP8 only. kPromoted, cublasLt's default: CUDA cores add partial sums in FP32. kFast: all sums
// stay in the tensor cores.
enum class Accumulation { kPromoted, kFast };

// A call of cublasLtMatmul for the same multiplication. T: std::int8_t or __nv_fp8_e4m3. The
// handle, the workspace and the choice of an algorithm are made now, not while timed. Throws
// std::invalid_argument when it has no kernel for these operands.
template <class T>
std::function<void(cudaStream_t)> make_cublaslt(const Product<T>& product, Accumulation accumulation);

}  // namespace day42
