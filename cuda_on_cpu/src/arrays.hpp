// CUDA arrays: memory that only copies, textures and surfaces can access.
#pragma once

#include <cstddef>
#include <vector>

#include "driver_types.h"

// The data is a sequence of slices without gaps: layers, faces, or planes of a three-dimensional
// array. Each slice is a sequence of rows without gaps.
struct cudaArray {
    cudaChannelFormatDesc format;
    cudaExtent extent;  // as requested; 0 for a dimension that the array does not have
    unsigned flags;
    std::size_t element_bytes;
    char* data;

    std::size_t row_bytes() const { return extent.width * element_bytes; }
    std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
    std::size_t slices() const { return extent.depth == 0 ? 1 : extent.depth; }
    std::size_t slice_bytes() const { return row_bytes() * rows(); }
    std::size_t bytes() const { return slice_bytes() * slices(); }
};

struct cudaMipmappedArray {
    std::vector<cudaArray*> levels;
};

namespace cuda_on_cpu {

// Bytes per element of this format; 0 if arrays do not support the format.
std::size_t element_bytes(const cudaChannelFormatDesc& format);

bool is_live_array(cudaArray_const_t array);
bool is_live_array(cudaMipmappedArray_const_t array);

}  // namespace cuda_on_cpu
