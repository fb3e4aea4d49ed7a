// Matrix products with few results in each: thousands of tiny products, or one whose K is far
// larger than its M and N. A block's tile of 64 x 64 results would be almost empty.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/device/operands.hpp"

namespace course {

// The type of the sums: products of bytes are summed as integers, which wrap beyond 32 bits.
template <class T>
using FewSum = std::conditional_t<std::is_integral_v<T>, std::int32_t, float>;

// How it multiplies: so many lanes of a warp share the K of a result; or, with lanes = 0, blocks
// have tiles of 16 x 16 results, and `splits` of them share the K of a tile.
struct FewResultsPlan {
    unsigned lanes = 0;
    unsigned splits = 0;
    double microseconds = 0;  // an estimate
};

// The faster one on a GPU with so many multiprocessors.
FewResultsPlan plan_few_results(const ProductShape& shape, std::size_t multiprocessors);

// Queues C = alpha op(A) op(B) + beta C for each product of a batch: any alignment and leading
// dimension, strides or pointers; any plan is right for any shape. With beta = 0, C is not read;
// with alpha = 0, neither are A and B. The arguments have been checked, and C has elements. Blocks
// that share a K take scratch memory from CUDA's pool, 4 bytes for each split of a result. T:
// float, __half, __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2 or std::int8_t. Throws CudaError when
// CUDA refuses; std::invalid_argument for lanes that are neither 0 nor a power of two up to 32,
// splits that are not from 1 to 65,535, and 2^31 results or more.
template <class T>
void multiply_few(const FewResultsPlan& plan, const OperandsOf<T>& operands, const Batch<FewSum<T>>& c,
                  FewSum<T> alpha, FewSum<T> beta, cudaStream_t stream);

}  // namespace course
