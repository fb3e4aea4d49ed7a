// Streams and events. An operation issued to a stream goes to the work queue (work_queue.hpp) or,
// while the stream is being captured, becomes a node of a graph (capture.hpp).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuda_on_cpu/launch.h"
#include "driver_types.h"
#include "stream_operation.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {

struct Capture;

// Sets `capture` to the capture that `stream` is part of, or to null. Reports an invalid handle as
// an error of `function`.
cudaError_t capture_of(cudaStream_t stream, const char* function, std::shared_ptr<Capture>& capture);
// An operation in `stream` has failed, so the capture that it is part of, if any, can only end in
// an error.
void invalidate_capture_of(cudaStream_t stream);

// Checks a call that is forbidden during any capture, or during any that is not relaxed. Returns an
// error and invalidates those captures.
enum class Forbidden { by_every_capture, by_strict_captures };
cudaError_t check_no_capture(const char* function, Forbidden forbidden);

// Issues `operation`, or records it if the stream is being captured. Refuses it if the context is
// lost or the handle is invalid.
cudaError_t submit(cudaStream_t stream, const char* function, StreamOperation operation);
// The same, for callers on an OS thread that runs no kernel. For kernels: child_grids.hpp.
// In an inspection: which launch this is, and beside which earlier one it may run.
void number_launch(LaunchConfiguration& configuration);
cudaError_t submit_by_host(cudaStream_t stream, const char* function, StreamOperation operation);
// The same for work that the host waits for.
inline cudaError_t submit(cudaStream_t stream, const char* function, Work work) {
    return submit(stream, function,
                  StreamOperation{.work = std::move(work), .host_waits = true, .launch = {}});
}

StreamOperation host_operation(cudaHostFn_t function, void* user_data);

// Waits for all streams of all devices, or of one, as cudaFree does.
void wait_for_all_streams();
void wait_for_streams_of(int device);

// For streams and events of kernels and graphs, which check the handles.
bool is_default(cudaStream_t stream);
cudaError_t check_stream(cudaStream_t stream, const char* function);
StreamTail& tail_of(cudaStream_t stream);
// The device of a stream; for a default stream, the current device.
int device_of(cudaStream_t stream);
// cudaErrorInvalidResourceHandle if the stream does not belong to the current device.
cudaError_t check_device_of(cudaStream_t stream, const char* function);
// May work be issued to the stream now? Kernels and host functions may not, and the context must
// not be lost.
cudaError_t check_issue(cudaStream_t stream, const char* function);
bool event_exists(cudaEvent_t event);
void record_now(cudaEvent_t event);
// `task`, which is not issued yet, records the event. What it returns is to be called when the task
// is in a stream: earlier, another host thread could wait for a task that nothing runs.
std::function<void()> record_behind(cudaEvent_t event, const TaskPointer& task);
// The tasks that must be done before the event.
std::vector<TaskPointer> tasks_before(cudaEvent_t event);

}  // namespace cuda_on_cpu
