// cuBLAS, to measure against.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <functional>
#include <span>
#include <string>

#include "mixture_of_experts.hpp"

namespace day27 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// The products and the lesson's combine: one call for each expert that has tokens, of rows that are
// in the order of experts already. The routing of `logits` is done here, on the host, and not where
// it is timed. Where cuBLAS cannot run, an empty function.
//
// float: cublasSgemm, in FP32 (no TF32). __nv_bfloat16: cublasGemmEx, with results in FP32.
template <class T>
std::function<void(cudaStream_t)> make_cublas(const LayerOf<T>& layer, std::span<const float> logits);

// Why there is no grouped call for this shape, or "".
std::string why_no_grouped_cublas(const Shape& shape);

// The same in one call for all experts, cublasGemmGroupedBatchedEx. It has BF16 results only: each
// product is rounded once more, and a combine of its own reads half as many bytes.
std::function<void(cudaStream_t)> make_grouped_cublas(const LayerOf<__nv_bfloat16>& layer,
                                                      std::span<const float> logits);

}  // namespace day27
