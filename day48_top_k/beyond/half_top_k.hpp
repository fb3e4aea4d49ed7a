// The k best elements of each row of a product of 16-bit matrices, FP16 or BF16, on tensor cores:
// the host API.
//
// Both operands are K-major: queries are rows of A, points rows of B (op_b = kTranspose).
// Distances, their order and ties are as in top_k.hpp; sums are in FP32. k up to 1024.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "top_k.hpp"

namespace day48 {

template <class E>
struct HalfTopKSelector {
    // Queues the work. Throws std::invalid_argument when shapes or sizes do not match, k is out of
    // range, for another layout, or the metric kDifferences, which is no product; CudaError if a
    // call to CUDA fails.
    void (*launch)(const TopKMatmulOf<E>& matmul, cudaStream_t stream);
    // Elements of scratch memory, on the current device. Throws std::invalid_argument for a k out
    // of range.
    std::size_t (*scratch_size)(const TopKShape& shape);
};

// "half_mma", from compute capability 8.0 on, and "half_wgmma", for Hopper. E: __half or
// __nv_bfloat16.
template <class E>
using HalfTopK = course::Version<HalfTopKSelector<E>, TopKShape>;
template <class E>
std::span<const HalfTopK<E>> half_top_k_versions();

// Why half_wgmma launches the kernel of half_mma for these operands, or "".
template <class E>
std::string why_no_half_wgmma(const course::OperandsOf<E>& operands);

}  // namespace day48
