// Day 50, beyond: all steps of all GPUs in one CUDA graph.
//
//   ./course run day50 --only graph
#pragma once

#include <cuda_runtime.h>

#include "common/check/check.hpp"
#include "multi_gpu.hpp"

namespace day50 {

// Idea: stream capture records the launches of all steps once, on the streams of all devices. One
// call then launches all of them. Waits for events become dependencies between nodes of the graph.
// Cost removed: the host's time for each launch, event and wait.
// Still limits it: each node takes time to start, and those of two GPUs wait for each other.
inline void launch_graph(Domain& domain, unsigned steps, Launcher all_steps, cudaStream_t stream) {
    cudaGraphExec_t& executable = domain.graph(steps);
    if (executable == nullptr) {
        // Streams of other ranks join the capture by the events that they wait for. It must end
        // even if a call fails.
        const cudaStream_t origin = domain.ranks()[0].edges;
        cudaGraph_t recorded = nullptr;
        CUDA_CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
        try {
            all_steps(domain, steps, origin);
        } catch (...) {
            static_cast<void>(cudaStreamEndCapture(origin, &recorded));
            throw;
        }
        CUDA_CHECK(cudaStreamEndCapture(origin, &recorded));
        const cudaError_t instantiated = cudaGraphInstantiate(&executable, recorded, 0);
        CUDA_CHECK(cudaGraphDestroy(recorded));
        CUDA_CHECK(instantiated);
    }
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
}

}  // namespace day50
