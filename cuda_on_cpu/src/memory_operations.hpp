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
cudaError_t copy_operation(const char* function, const Copy& copy, StreamOperation* operation);
cudaError_t copy_operation(const char* function, const cudaMemcpy3DParms& params, StreamOperation* operation);
cudaError_t memset_operation(const char* function, const cudaMemsetParams& params,
                             StreamOperation* operation);

// Memory that a node of a graph allocates, and frees: `pointer` is valid at once, and its memory
// whenever the graph has run that far. A graph may also free what cudaMallocAsync has allocated.
cudaError_t graph_allocation(const char* function, std::size_t bytes, void** pointer,
                             StreamOperation* operation);
cudaError_t graph_release(const char* function, void* pointer, StreamOperation* operation);
// Was it allocated by a graph? Then it is free now.
bool release_to_graph(void* pointer);

}  // namespace cuda_on_cpu
