// The k best elements of each row of a matrix product for any k, by repeated passes.
//
// The versions in top_k.hpp keep at most 1024 keys of a row in shared memory. Here each pass over
// the matrix of distances returns the next 1024 of each row: those after the last key that the pass
// before has found. No two keys of a row are equal (keys.cuh), so no element is found twice or
// lost, also where equal values are on both sides of the border between two passes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "top_k.hpp"

namespace day48 {

// Elements of scratch memory: the matrix of distances, and the results of a pass. Throws
// std::invalid_argument if `shape.k` is 0, or larger than the number of columns.
std::size_t many_best_scratch_size(const TopKShape& shape);

// As the versions in top_k.hpp, but matmul.k may be as large as op(B) has columns. Queues the work
// on `stream`. Throws std::invalid_argument when shapes or sizes do not match, or k is out of
// range; CudaError if a call to CUDA fails.
void launch_many_best(const TopKMatmul& matmul, cudaStream_t stream);

// Passes over the matrix: 1 for k up to 1024.
std::size_t passes_of(std::size_t k);

}  // namespace day48
