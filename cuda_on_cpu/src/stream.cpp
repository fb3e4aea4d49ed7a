#include "stream.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "cuda_runtime_api.h"
#include "errors.hpp"

using cuda_on_cpu::Capture;
using cuda_on_cpu::GraphNode;

struct CUstream_st {
    unsigned flags = cudaStreamDefault;
    int priority = 0;
    std::shared_ptr<Capture> capture;
    std::set<std::size_t> after;  // the nodes of the capture that this stream's next one comes after
};

struct CUevent_st {
    unsigned flags = cudaEventDefault;
    bool recorded = false;
    std::chrono::steady_clock::time_point time;
    std::weak_ptr<Capture> capture;  // of the stream it was recorded in
    bool captured = false;
    std::set<std::size_t> after;  // as the stream's, when the event was recorded
};

struct CUgraph_st {
    std::vector<GraphNode> nodes;
    std::size_t roots = 0;
};

struct CUgraphExec_st {
    std::vector<GraphNode> nodes;
};

namespace cuda_on_cpu {
namespace {

// Handles that are alive. A handle that is not here has been destroyed or was never created.
template <class T>
class Handles {
  public:
    T* create(T object) {
        auto* created = new T(std::move(object));
        const std::scoped_lock lock(mutex_);
        alive_.insert(created);
        return created;
    }
    bool contains(T* handle) {
        const std::scoped_lock lock(mutex_);
        return alive_.contains(handle);
    }
    bool destroy(T* handle) {
        {
            const std::scoped_lock lock(mutex_);
            if (alive_.erase(handle) == 0) return false;
        }
        delete handle;
        return true;
    }
    template <class Function>
    void for_each(Function function) {
        const std::scoped_lock lock(mutex_);
        for (T* handle : alive_)
            function(*handle);
    }

  private:
    std::mutex mutex_;
    std::set<T*> alive_;
};

Handles<CUstream_st>& streams() {
    static auto* handles = new Handles<CUstream_st>;  // usable until the last static destructor
    return *handles;
}
Handles<CUevent_st>& events() {
    static auto* handles = new Handles<CUevent_st>;
    return *handles;
}
Handles<CUgraph_st>& graphs() {
    static auto* handles = new Handles<CUgraph_st>;
    return *handles;
}
Handles<CUgraphExec_st>& executables() {
    static auto* handles = new Handles<CUgraphExec_st>;
    return *handles;
}

bool is_default(cudaStream_t stream) {
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaError_t invalid_handle(const char* function, const char* what) {
    return refuse(cudaErrorInvalidResourceHandle, function, "this %s does not exist (any more)", what);
}

cudaError_t no_such_graph(const char* function) {
    return refuse(cudaErrorInvalidValue, function, "this graph does not exist (any more)");
}

cudaError_t check_stream(cudaStream_t stream, const char* function) {
    if (is_default(stream) || streams().contains(stream)) return cudaSuccess;
    return invalid_handle(function, "stream");
}

// Invalidates the captures of all streams that `concerns` picks. True if there was one.
template <class Predicate>
bool invalidate_captures(Predicate concerns) {
    bool found = false;
    streams().for_each([&](CUstream_st& stream) {
        if (stream.capture == nullptr || !concerns(stream)) return;
        stream.capture->invalidated = true;
        found = true;
    });
    return found;
}

// The legacy stream waits for all blocking streams, and nobody can wait for one that only notes its work.
bool is_blocking(const CUstream_st& stream) {
    return (stream.flags & cudaStreamNonBlocking) == 0;
}

}  // namespace

cudaError_t capture_of(cudaStream_t stream, const char* function, std::shared_ptr<Capture>& capture) {
    if (const cudaError_t error = check_stream(stream, function); error != cudaSuccess) return error;
    if (!is_default(stream)) capture = stream->capture;
    return cudaSuccess;
}

void invalidate_capture_of(cudaStream_t stream) {
    invalidate_captures([stream](const CUstream_st& other) { return &other == stream; });
}

cudaError_t check_no_capture(const char* function, Forbidden forbidden) {
    const auto forbids = [forbidden](const CUstream_st& stream) {
        return forbidden == Forbidden::by_every_capture || !stream.capture->relaxed;
    };
    if (!invalidate_captures(forbids)) return cudaSuccess;
    return refuse(cudaErrorStreamCaptureUnsupported, function, "not while a stream captures");
}

cudaError_t submit(cudaStream_t stream, const char* function, Work work,
                   std::optional<LaunchConfiguration> launch) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return note(lost);
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, function, capture); error != cudaSuccess) return error;
    if (capture != nullptr) {
        if (stream->after.empty()) ++capture->roots;
        stream->after.insert(capture->nodes.size());
        capture->nodes.push_back({std::move(work), launch});
        return cudaSuccess;
    }
    if ((stream == nullptr || stream == cudaStreamLegacy) && invalidate_captures(is_blocking)) {
        return refuse(cudaErrorStreamCaptureImplicit, function,
                      "the default stream would wait for a stream that captures");
    }
    return note(work());
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Streams -----------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    if (stream == nullptr) return refuse(cudaErrorInvalidValue, __func__, "stream is null");
    if (flags > cudaStreamNonBlocking) return refuse(cudaErrorInvalidValue, __func__, "flags %u", flags);
    *stream = streams().create({.flags = flags, .priority = priority, .capture = nullptr, .after = {}});
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (is_default(stream) || !streams().destroy(stream)) return invalid_handle(__func__, "stream");
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr) {
        capture->invalidated = true;
        return refuse(cudaErrorStreamCaptureUnsupported, __func__,
                      "the stream captures: there is nothing to wait for");
    }
    return note(lost_context());
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return cudaStreamSynchronize(stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    if (event->captured) {
        const auto capture = event->capture.lock();
        if (capture == nullptr || is_default(stream)) {
            return refuse(cudaErrorCapturedEvent, __func__,
                          "the event belongs to a capture that this stream cannot join");
        }
        if (stream->capture != nullptr && stream->capture != capture) {
            return refuse(cudaErrorStreamCaptureInvalidated, __func__,
                          "the stream is part of another capture");
        }
        stream->capture = capture;
        stream->after.insert(event->after.begin(), event->after.end());
    }
    return note(lost_context());
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    *flags = is_default(stream) ? cudaStreamDefault : stream->flags;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    *priority = is_default(stream) ? 0 : stream->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned) {
    if (callback == nullptr) return refuse(cudaErrorInvalidValue, __func__, "callback is null");
    return submit(stream, __func__, [=] {
        callback(stream, cudaSuccess, user_data);
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
    if (function == nullptr) return refuse(cudaErrorInvalidValue, __func__, "function is null");
    return submit(stream, __func__, [=] {
        function(user_data);
        return cudaSuccess;
    });
}

// --- Events ------------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    if (event == nullptr) return refuse(cudaErrorInvalidValue, __func__, "event is null");
    *event = events().create(
        {.flags = flags, .recorded = false, .time = {}, .capture = {}, .captured = false, .after = {}});
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return events().destroy(event) ? cudaSuccess : invalid_handle(__func__, "event");
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    event->captured = capture != nullptr;
    event->capture = capture;
    if (capture != nullptr) {
        event->after = stream->after;
        return cudaSuccess;
    }
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    return note(lost_context());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    if (event->captured)
        return refuse(cudaErrorCapturedEvent, __func__, "the event was recorded in a capture");
    return note(lost_context());
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (milliseconds == nullptr) return refuse(cudaErrorInvalidValue, __func__, "milliseconds is null");
    if (!events().contains(start) || !events().contains(end)) return invalid_handle(__func__, "event");
    for (const cudaEvent_t event : {start, end}) {
        if ((event->flags & cudaEventDisableTiming) != 0 || !event->recorded) {
            return refuse(cudaErrorInvalidResourceHandle, __func__,
                          "an event that was not recorded, or without timing");
        }
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return note(lost_context());
}

// --- Graphs ------------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    if (is_default(stream)) {
        return refuse(cudaErrorStreamCaptureUnsupported, __func__, "the default stream cannot capture");
    }
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    if (stream->capture != nullptr)
        return refuse(cudaErrorIllegalState, __func__, "the stream captures already");
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return refuse(cudaErrorIllegalState, __func__, "the stream does not capture");
    if (capture->origin != stream) {
        return refuse(cudaErrorStreamCaptureUnmatched, __func__, "the capture began in another stream");
    }
    // Streams that joined share the capture; they leave it when it ends.
    capture->origin = nullptr;
    const bool joined = stream->after.size() == capture->nodes.size();
    streams().for_each([&capture](CUstream_st& other) {
        if (other.capture != capture) return;
        other.capture = nullptr;
        other.after.clear();
    });
    if (capture->invalidated) {
        *graph = nullptr;
        return refuse(cudaErrorStreamCaptureInvalidated, __func__, "an earlier error ended this capture");
    }
    if (!joined) {
        *graph = nullptr;
        return refuse(cudaErrorStreamCaptureUnjoined, __func__,
                      "work of another stream that this one did not wait for");
    }
    *graph = graphs().create({capture->nodes, capture->roots});
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    *status = capture == nullptr     ? cudaStreamCaptureStatusNone
              : capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    if (executable == nullptr) return refuse(cudaErrorInvalidValue, __func__, "executable is null");
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    *executable = executables().create({graph->nodes});
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                 std::size_t) {
    return cudaGraphInstantiate(executable, graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    return submit(stream, __func__, [nodes = executable->nodes] {
        for (const GraphNode& node : nodes) {
            if (const cudaError_t error = node.work(); error != cudaSuccess) return error;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    if (nodes != nullptr) {
        *count = std::min(*count, graph->nodes.size());
        for (std::size_t i = 0; i < *count; ++i)
            nodes[i] = reinterpret_cast<cudaGraphNode_t>(&graph->nodes[i]);
        return cudaSuccess;
    }
    *count = graph->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
    const GraphNode* found = nullptr;
    graphs().for_each([&](CUgraph_st& graph) {
        for (const GraphNode& candidate : graph.nodes) {
            if (reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(&candidate)) == node)
                found = &candidate;
        }
    });
    if (found == nullptr) return no_such_graph(__func__);
    if (!found->launch) return refuse(cudaErrorInvalidValue, __func__, "this node launches no kernel");
    *params = {.func = nullptr,  // nor its arguments: nobody has asked yet
               .gridDim = found->launch->grid,
               .blockDim = found->launch->block,
               .sharedMemBytes = static_cast<unsigned>(found->launch->dynamic_shared),
               .kernelParams = nullptr,
               .extra = nullptr};
    return cudaSuccess;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    if (nodes != nullptr)
        return refuse(cudaErrorNotSupported, __func__, "only the number of nodes can be asked for");
    *count = graph->roots;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return executables().destroy(executable) ? cudaSuccess : no_such_graph(__func__);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return graphs().destroy(graph) ? cudaSuccess : no_such_graph(__func__);
}
