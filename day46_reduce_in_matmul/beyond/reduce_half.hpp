// Minima and maxima of products of 16-bit matrices, FP16 or BF16, on tensor cores: the host API.
//
//     values[i] = minimum over j of metric(row i of A, row j of B)        indices[i] = that j
//
// Both operands are K-major: B is given with op_b = kTranspose, so points and centres are rows.
// Distances, values and their order are as in reduce_in_matmul.hpp: sums in FP32, of equal elements
// the lowest index, NaN before all numbers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce_in_matmul.hpp"

namespace day46 {

template <class T>
struct HalfReducer {
    // Queues the work. Throws std::invalid_argument when shapes or sizes do not match, for another
    // layout, a sum, columns, or the metric kDifferences, which is no product; CudaError if a call
    // to CUDA fails.
    void (*launch)(const ReducedMatmulOf<T>& matmul, cudaStream_t stream);
    // Elements of scratch memory, on the current device.
    std::size_t (*scratch_size)(const ReduceShape& shape);
};

// "half_mma", from compute capability 8.0 on, and "half_wgmma", for Hopper. T: __half or
// __nv_bfloat16.
template <class T>
using HalfReduce = course::Version<HalfReducer<T>, ReduceShape>;
template <class T>
std::span<const HalfReduce<T>> half_reduce_versions();

}  // namespace day46
