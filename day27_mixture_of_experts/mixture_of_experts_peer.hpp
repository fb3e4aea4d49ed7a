// cuBLAS, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <span>
#include <string>

#include "mixture_of_experts.hpp"

namespace day27 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// The products alone: cublasSgemm in FP32 (no TF32) once for each expert that has tokens, of rows
// that are in the order of experts already; then the lesson's combine. The routing of `logits` is
// done here, on the host, and not where it is timed. Where cuBLAS cannot run, an empty function.
std::function<void(cudaStream_t)> make_cublas(const Layer& layer, std::span<const float> logits);

}  // namespace day27
