// The part of list_best_wgmma.cu that day 48's host code uses.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/tile/distance.cuh"
#include "row_lists.cuh"
#include "top_k.hpp"

namespace day48 {

// Why the version `fused_wgmma` runs the kernel of `fused` for a problem, or "".
std::string why_no_wgmma(const TopKMatmul& matmul);

// The scratch memory for the transposed queries, and where they start in it: 16-byte aligned.
std::size_t transposed_words(std::size_t m, std::size_t d);

// As list_best(): lists the best of each row, and stores the pieces.
void launch_list_best_wgmma(const TopKMatmul& matmul, const course::Distance& distance, float sign,
                            const RowLists& lists, std::uint64_t* transposed, cudaStream_t stream);

}  // namespace day48
