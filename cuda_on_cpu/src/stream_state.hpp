// The state of a stream, for the files that implement functions of streams.
#pragma once

#include <memory>
#include <vector>

#include "capture.hpp"
#include "driver_types.h"
#include "handles.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {

// The attributes of cudaStreamSetAttribute(), except the priority.
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
    // The nodes of the capture on which this stream's next node depends.
    std::vector<cudaGraphNode_t> after;
    cuda_on_cpu::StreamAttributes attributes{};
};

namespace cuda_on_cpu {

Handles<CUstream_st>& streams();
// Appends those of `more` that `nodes` does not contain yet.
void add_missing(std::vector<cudaGraphNode_t>& nodes, const std::vector<cudaGraphNode_t>& more);

}  // namespace cuda_on_cpu
