// Streams, events and graphs. Work runs when it is issued, in the order of issue: one of the orders that a GPU may
// choose. A stream that captures notes the work instead, and a graph runs it later, in the same order.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuda_on_cpu/launch.h"
#include "driver_types.h"

namespace cuda_on_cpu {

using Work = std::function<cudaError_t()>;

// What a capture has noted: something to do, and if that is to launch a kernel, how.
struct GraphNode {
    Work work;
    std::optional<LaunchConfiguration> launch;
};

// What one capture has noted so far. Streams that join it through events share it.
struct Capture {
    std::vector<GraphNode> nodes;
    std::size_t roots = 0;  // nodes that come after no other
    cudaStream_t origin = nullptr;
    bool relaxed = false;  // allows calls that a GPU's driver may answer by waiting
    bool invalidated = false;
};

// The capture that `stream` is part of, or null. An invalid handle is an error of `function`.
cudaError_t capture_of(cudaStream_t stream, const char* function, std::shared_ptr<Capture>& capture);

// Something went wrong in `stream`: the capture it is part of, if any, can only end in an error.
void invalidate_capture_of(cudaStream_t stream);

// A call that no capture, or none but a relaxed one, may see while it is under way. An error, and the end of those captures.
enum class Forbidden { by_every_capture, by_strict_captures };
cudaError_t check_no_capture(const char* function, Forbidden forbidden);

// Runs `work` now, or notes it when the stream captures. Refuses when the context is lost or the handle is invalid.
// `launch`: of a kernel.
cudaError_t submit(cudaStream_t stream, const char* function, Work work,
                   std::optional<LaunchConfiguration> launch = std::nullopt);

}  // namespace cuda_on_cpu
