// Nodes of each type: turns their parameters into operations.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"
#include "graph_state.hpp"

namespace cuda_on_cpu {

// Sets the operation of `node`, and stores the parameters in it.
cudaError_t set_kernel(const char* function, CUgraphNode_st& node, const cudaKernelNodeParams* params);
cudaError_t set_copy(const char* function, CUgraphNode_st& node, const cudaMemcpy3DParms* params);
cudaError_t set_memset(const char* function, CUgraphNode_st& node, const cudaMemsetParams* params);
cudaError_t set_host(const char* function, CUgraphNode_st& node, const cudaHostNodeParams* params);

template <class Params>
using Setter = cudaError_t (*)(const char*, CUgraphNode_st&, const Params*);

cudaMemcpy3DParms one_dimensional(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace cuda_on_cpu
