// Copies and memsets as work that a stream or a node of a graph does.
#pragma once

#include <cstddef>

#include "driver_types.h"
#include "stream.hpp"

namespace cuda_on_cpu {

// `height` rows of `width` bytes.
struct Copy {
    void* to;
    std::size_t to_pitch;
    const void* from;
    std::size_t from_pitch;
    std::size_t width;
    std::size_t height;
    cudaMemcpyKind kind;
};

// Errors as cudaMemcpy gives; otherwise `operation` is the copy.
cudaError_t copy_operation(const char* function, const Copy& copy, Operation* operation);
cudaError_t copy_operation(const char* function, const cudaMemcpy3DParms& params, Operation* operation);
cudaError_t memset_operation(const char* function, const cudaMemsetParams& params, Operation* operation);

}  // namespace cuda_on_cpu
