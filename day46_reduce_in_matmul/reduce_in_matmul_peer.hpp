// cuBLAS and then a kernel, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "reduce_in_matmul.hpp"

namespace day46 {

// The least element of each row, with its column: cublasSgemmStridedBatched writes the products to
// `product`, and the second kernel of `unfused` reads them. For the metric kDot, the minimum along
// rows, and batches with a stride. Where cuBLAS cannot run, an empty function.
std::function<void(cudaStream_t)> make_cublas_then_reduce(const ReducedMatmul& matmul,
                                                          course::DeviceSpan<float> product);

}  // namespace day46
