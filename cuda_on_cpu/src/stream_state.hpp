// What a stream is, for the files that have functions of streams.
#pragma once

#include <memory>
#include <vector>

#include "capture.hpp"
#include "driver_types.h"
#include "handles.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {

// What cudaStreamSetAttribute() sets, besides the priority.
struct StreamAttributes {
    cudaAccessPolicyWindow window{};
    cudaSynchronizationPolicy synchronization = cudaSyncPolicyAuto;
};

}  // namespace cuda_on_cpu

struct CUstream_st {
    int device = 0;
    unsigned flags = cudaStreamDefault;
    int priority = 0;
    cuda_on_cpu::StreamTail tail;
    std::shared_ptr<cuda_on_cpu::Capture> capture;
    std::vector<cudaGraphNode_t> after;  // the nodes of the capture that this stream's next one comes after
    cuda_on_cpu::StreamAttributes attributes{};
};

namespace cuda_on_cpu {

Handles<CUstream_st>& streams();
// Those of `more` that `nodes` does not have yet.
void add_missing(std::vector<cudaGraphNode_t>& nodes, const std::vector<cudaGraphNode_t>& more);

}  // namespace cuda_on_cpu
