// Copies and memsets as operations of a stream or of a graph's node.
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

// Returns the errors of cudaMemcpy; on success `operation` is the copy.
cudaError_t copy_operation(const char* function, const Copy& copy, StreamOperation* operation);
cudaError_t copy_operation(const char* function, const cudaMemcpy3DParms& params, StreamOperation* operation);
cudaError_t memset_operation(const char* function, const cudaMemsetParams& params,
                             StreamOperation* operation);

// Memory that nodes of a graph allocate and free. `pointer` is valid at once; its memory may be
// used once the graph has run the allocating node. A graph may also free memory of cudaMallocAsync.
cudaError_t graph_allocation(const char* function, std::size_t bytes, void** pointer,
                             StreamOperation* operation);
cudaError_t graph_release(const char* function, void* pointer, StreamOperation* operation);
// Frees memory that a graph has allocated. False: it is not such memory.
bool release_to_graph(void* pointer);

}  // namespace cuda_on_cpu
