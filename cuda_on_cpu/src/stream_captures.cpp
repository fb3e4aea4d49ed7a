// Start and end of stream captures.
#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "graph.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

namespace cuda_on_cpu {

namespace {

// Ends the capture, for all streams that have joined it.
void leave_capture(const std::shared_ptr<Capture>& capture) {
    capture->end();
    streams().for_each([&capture](CUstream_st& other) {
        if (other.capture != capture) return;
        other.capture = nullptr;
        other.after.clear();
    });
}

cudaError_t begin_capture(const char* function, cudaStream_t stream, cudaStreamCaptureMode mode,
                          cudaGraph_t graph, std::vector<cudaGraphNode_t> after) {
    if (is_default(stream)) {
        return refuse(cudaErrorStreamCaptureUnsupported, function, "the default stream cannot capture");
    }
    if (const cudaError_t error = check_stream(stream, function); error != cudaSuccess) return error;
    if (stream->capture != nullptr)
        return refuse(cudaErrorIllegalState, function, "the stream captures already");
    stream->capture = std::make_shared<Capture>(stream, graph, mode);
    stream->after = std::move(after);
    return cudaSuccess;
}

}  // namespace

void add_missing(std::vector<cudaGraphNode_t>& nodes, const std::vector<cudaGraphNode_t>& more) {
    for (const cudaGraphNode_t node : more) {
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return begin_capture(__func__, stream, mode, nullptr, {});
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies, const cudaGraphEdgeData*,
                                          std::size_t count, cudaStreamCaptureMode mode) {
    if (const cudaError_t error = check_dependencies(__func__, graph, dependencies, count);
        error != cudaSuccess)
        return error;
    return begin_capture(__func__, stream, mode, graph, {dependencies, dependencies + count});
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return refuse(cudaErrorIllegalState, __func__, "the stream does not capture");
    if (capture->origin != stream) {
        return refuse(cudaErrorStreamCaptureUnmatched, __func__, "the capture began in another stream");
    }
    const bool joined = capture->is_joined(stream->after);
    leave_capture(capture);
    if (graph != nullptr) *graph = nullptr;
    if (capture->invalidated) {
        return refuse(cudaErrorStreamCaptureInvalidated, __func__, "an earlier error ended this capture");
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
        return refuse(cudaErrorStreamCaptureWrongThread, __func__,
                      "another host thread has begun the capture; only a capture with "
                      "cudaStreamCaptureModeRelaxed may end in this one");
    }
    if (!joined) {
        return refuse(cudaErrorStreamCaptureUnjoined, __func__,
                      "work of another stream that this one did not wait for");
    }
    if (graph != nullptr) {
        *graph = capture->graph;
        capture->owns_graph = false;
    }
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return cudaStreamGetCaptureInfo(stream, status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
    if (status == nullptr) return refuse(cudaErrorInvalidValue, __func__, "status is null");
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    *status = capture == nullptr     ? cudaStreamCaptureStatusNone
              : capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    if (capture == nullptr) return cudaSuccess;
    if (id != nullptr) *id = reinterpret_cast<unsigned long long>(capture.get());
    if (graph != nullptr) *graph = capture->graph;
    if (dependencies != nullptr) *dependencies = stream->after.data();
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = stream->after.size();
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData*, std::size_t count, unsigned flags) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return refuse(cudaErrorIllegalState, __func__, "the stream does not capture");
    if (const cudaError_t error = check_dependencies(__func__, capture->graph, dependencies, count);
        error != cudaSuccess)
        return error;
    if (flags == cudaStreamSetCaptureDependencies) stream->after.clear();
    add_missing(stream->after, {dependencies, dependencies + count});
    return cudaSuccess;
}
