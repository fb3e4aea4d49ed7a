#include "stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "capture.hpp"
#include "child_grids.hpp"
#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "handles.hpp"
#include "managed_watch.hpp"
#include "shared_event.hpp"
#include "stream_state.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// An event that was recorded while the work before it was not done.
struct Recording {
    cuda_on_cpu::TaskPointer task;
    Clock::time_point time;
};

struct EventState {
    bool recorded = false;
    Clock::time_point time{};  // unless there is a `recording`
    std::shared_ptr<Recording> recording{};
    bool captured = false;
    std::weak_ptr<cuda_on_cpu::Capture> capture{};       // of the stream in which it was recorded
    std::vector<cudaGraphNode_t> after{};                // the stream's `after` when the event was recorded
    std::shared_ptr<cuda_on_cpu::SharedEvent> shared{};  // for events shared with other processes
};

}  // namespace

// One host thread may record an event while others query it or wait for it.
struct CUevent_st {
  public:
    CUevent_st(int event_device, unsigned event_flags) : device(event_device), flags(event_flags) {}

    EventState state() const {
        const std::scoped_lock lock(mutex_);
        return state_;
    }
    template <class Change>
    void change(Change change) {
        const std::scoped_lock lock(mutex_);
        change(state_);
    }

    const int device;
    const unsigned flags;

  private:
    mutable std::mutex mutex_;
    EventState state_;
};

namespace cuda_on_cpu {
namespace {

Handles<CUevent_st>& events() {
    static auto* handles = new Handles<CUevent_st>("event", "cudaEventDestroy");
    return *handles;
}

cudaError_t invalid_handle(const char* function, const char* what) {
    return refuse(cudaErrorInvalidResourceHandle, function, "this %s does not exist (any more)", what);
}

cudaError_t refuse_in_host_function(const char* function) {
    return refuse(cudaErrorNotPermitted, function, "a host function of a stream may not call CUDA");
}

// Invalidates the captures of all streams for which `concerns` is true. Returns whether there was
// one.
template <class Predicate>
bool invalidate_captures(Predicate concerns) {
    if (!somebody_captures()) return false;
    bool found = false;
    streams().for_each([&](CUstream_st& stream) {
        if (stream.capture == nullptr || !concerns(stream)) return;
        stream.capture->invalidated = true;
        found = true;
    });
    return found;
}

bool is_blocking(const CUstream_st& stream) {
    return (stream.flags & cudaStreamNonBlocking) == 0;
}

TaskPointer new_task(Work work, bool may_wait = false) {
    auto task = std::make_shared<Task>();
    task->work = std::move(work);
    task->may_wait = may_wait;
    return task;
}

std::vector<TaskPointer> tasks_of(const EventState& event) {
    if (event.recording == nullptr || is_done(event.recording->task)) return {};
    return {event.recording->task};
}

cudaError_t refuse_in_kernel(const char* function) {
    return refuse(cudaErrorNotPermitted, function, "not in a kernel, which cannot wait for streams");
}

cudaError_t wait(const char* function, std::vector<TaskPointer> tasks) {
    if (in_kernel()) return refuse_in_kernel(function);
    if (in_host_function()) return refuse_in_host_function(function);
    ++host_waits;
    wait_for(std::move(tasks));
    forget_changed_pages();
    return set_last_error(lost_context());
}

cudaError_t query(const char* function, const std::vector<TaskPointer>& tasks) {
    if (in_kernel()) return refuse_in_kernel(function);
    if (in_host_function()) return refuse_in_host_function(function);
    if (!tasks.empty() && !poll_tasks(tasks)) return set_last_error(cudaErrorNotReady);
    forget_changed_pages();
    return set_last_error(lost_context());
}

// Checks a call that waits for a stream or queries it, which no capture allows.
cudaError_t check_outside_capture(cudaStream_t stream, const char* function) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, function, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return cudaSuccess;
    capture->invalidated = true;
    return refuse(cudaErrorStreamCaptureUnsupported, function,
                  "the stream captures: there is nothing to wait for");
}

}  // namespace

Handles<CUstream_st>& streams() {
    // Usable until the last static destructor.
    static auto* handles = new Handles<CUstream_st>("stream", "cudaStreamDestroy");
    return *handles;
}

bool is_default(cudaStream_t stream) {
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaError_t check_stream(cudaStream_t stream, const char* function) {
    if (is_default(stream) || streams().contains(stream)) return cudaSuccess;
    return invalid_handle(function, "stream");
}

using TailsOfDevices = std::array<StreamTail, kMostDevices>;

// One default stream per device.
TailsOfDevices tails_of_devices(StreamTail tail) {
    TailsOfDevices tails;
    for (; tail.device < kMostDevices; ++tail.device)
        tails[static_cast<std::size_t>(tail.device)] = tail;
    return tails;
}

StreamTail& tail_of(cudaStream_t stream) {
    static auto& legacy = *new TailsOfDevices(tails_of_devices({.task = nullptr, .legacy = true}));
    thread_local TailsOfDevices of_thread = tails_of_devices({.task = nullptr, .blocking = true});
    const auto device = static_cast<std::size_t>(current_device());
    if (stream == nullptr || stream == cudaStreamLegacy) return legacy[device];
    if (stream == cudaStreamPerThread) {
        expect_concurrency();
        return of_thread[device];
    }
    return stream->tail;
}

int device_of(cudaStream_t stream) {
    return is_default(stream) ? current_device() : stream->device;
}

cudaError_t check_device_of(cudaStream_t stream, const char* function) {
    if (is_default(stream) || !streams().contains(stream) || stream->device == current_device())
        return cudaSuccess;
    return refuse(cudaErrorInvalidResourceHandle, function,
                  "the stream belongs to device %d, and device %d is current", stream->device,
                  current_device());
}

bool event_exists(cudaEvent_t event) {
    return events().contains(event);
}

namespace {

// What an event is once it has been recorded, at once or behind `recording`.
void record_as(cudaEvent_t event, std::shared_ptr<Recording> recording) {
    event->change([&](EventState& state) {
        state.recorded = true;
        state.captured = false;
        state.recording = std::move(recording);
        state.time = Clock::now();
    });
}

std::shared_ptr<Recording> recording_by(const TaskPointer& task) {
    auto recording = std::make_shared<Recording>();
    recording->task = task;
    task->work = [recording] {
        recording->time = Clock::now();
        return cudaSuccess;
    };
    return recording;
}

}  // namespace

void record_now(cudaEvent_t event) {
    record_as(event, nullptr);
}

std::function<void()> record_behind(cudaEvent_t event, const TaskPointer& task) {
    return [event, recording = recording_by(task)] {
        if (event_exists(event)) record_as(event, recording);
    };
}

std::vector<TaskPointer> tasks_before(cudaEvent_t event) {
    return tasks_of(event->state());
}

namespace {

cudaError_t check_issue_by_host(cudaStream_t stream, const char* function) {
    if (in_host_function()) return refuse_in_host_function(function);
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (const cudaError_t error = check_stream(stream, function); error != cudaSuccess) return error;
    if ((stream == nullptr || stream == cudaStreamLegacy) && invalidate_captures(is_blocking)) {
        return refuse(cudaErrorStreamCaptureImplicit, function,
                      "the default stream would wait for a stream that captures");
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t check_issue(cudaStream_t stream, const char* function) {
    if (in_kernel()) return refuse(cudaErrorNotSupported, function, "in a kernel");
    return check_issue_by_host(stream, function);
}

cudaError_t capture_of(cudaStream_t stream, const char* function, std::shared_ptr<Capture>& capture) {
    if (const cudaError_t error = check_stream(stream, function); error != cudaSuccess) return error;
    if (!is_default(stream)) capture = stream->capture;
    return cudaSuccess;
}

void invalidate_capture_of(cudaStream_t stream) {
    if (!is_default(stream) && streams().contains(stream) && stream->capture != nullptr)
        stream->capture->invalidated = true;
}

cudaError_t check_no_capture(const char* function, Forbidden forbidden) {
    const auto forbids = [forbidden](const CUstream_st& stream) {
        return forbidden == Forbidden::by_every_capture || stream.capture->forbids_here();
    };
    if (!invalidate_captures(forbids)) return cudaSuccess;
    return refuse(
        cudaErrorStreamCaptureUnsupported, function,
        forbidden == Forbidden::by_every_capture
            ? "work that a stream captures into a graph has not started, so nothing can wait for it: a "
              "function that launches kernels leaves the waiting to its caller"
            : "a stream captures its work into a graph, which this call cannot be part of");
}

StreamOperation host_operation(cudaHostFn_t function, void* user_data) {
    return {.work = as_host_function([=] {
                function(user_data);
                return cudaSuccess;
            }),
            .type = cudaGraphNodeTypeHost,
            .may_wait = true,
            .launch = {}};
}

namespace {

// Of all tails: their last_kernel and host_waits, as several host threads may issue to one stream.
std::mutex last_kernels;

void forget_last_kernel(StreamTail& tail) {
    const std::lock_guard lock(last_kernels);
    tail.last_kernel = 0;
}

}  // namespace

cudaError_t submit(cudaStream_t stream, const char* function, StreamOperation operation) {
    return in_kernel() ? submit_by_kernel(stream, function, std::move(operation))
                       : submit_by_host(stream, function, std::move(operation));
}

cudaError_t submit_by_host(cudaStream_t stream, const char* function, StreamOperation operation) {
    if (const cudaError_t error = check_issue_by_host(stream, function); error != cudaSuccess) return error;
    if (!is_default(stream) && stream->capture != nullptr) {
        stream->capture->record(std::move(operation), stream->after);
        return cudaSuccess;
    }
    StreamTail& tail = tail_of(stream);
    if (operation.type != cudaGraphNodeTypeKernel) forget_last_kernel(tail);
    note_host_thread();
    if (!operation.may_wait) {
        if (const WorkAtOnce permitted; permitted) {
            const DeviceScope scope(device_of(stream));
            const cudaError_t error = operation.work();
            if (operation.host_waits) forget_changed_pages();
            return set_last_error(error);
        }
    }
    const TaskPointer task = new_task(std::move(operation.work), operation.may_wait);
    task->host_function = operation.type == cudaGraphNodeTypeHost;
    issue_task(task, tail);
    if (operation.host_waits) {
        wait_for({task});
        forget_changed_pages();
    }
    return operation.host_waits ? set_last_error(lost_context()) : cudaSuccess;
}

void number_launch(LaunchConfiguration& configuration) {
    static std::atomic<std::uint64_t> launches{0};
    const cudaStream_t stream = configuration.stream;
    configuration.number = ++launches;
    if (check_stream(stream, "kernel launch") != cudaSuccess) return;
    StreamTail& tail = tail_of(stream);
    const std::lock_guard lock(last_kernels);
    if (configuration.programmatic && tail.host_waits == host_waits) configuration.beside = tail.last_kernel;
    tail.last_kernel = configuration.number;
    tail.host_waits = host_waits;
}

void wait_for_all_streams() {
    ++host_waits;
    if (!in_host_function()) wait_for(all_open_tasks());
    forget_changed_pages();
}

void wait_for_streams_of(int device) {
    ++host_waits;
    if (!in_host_function()) wait_for(open_tasks_of_device(device));
    forget_changed_pages();
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Streams -------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    if (stream == nullptr) return refuse(cudaErrorInvalidValue, __func__, "stream is null");
    if (flags > cudaStreamNonBlocking) return refuse(cudaErrorInvalidValue, __func__, "flags %u", flags);
    if (in_kernel() && flags != cudaStreamNonBlocking) {
        return refuse(cudaErrorInvalidValue, __func__,
                      "a kernel creates streams with cudaStreamNonBlocking only; flags is %u", flags);
    }
    expect_concurrency();
    *stream = streams().create(
        {.device = current_device(),
         .flags = flags,
         .priority = std::clamp(priority, kGreatestPriority, kLeastPriority),
         .tail = {.task = nullptr, .blocking = flags == cudaStreamDefault, .device = current_device()},
         .capture = nullptr,
         .after = {}});
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

// The stream's open tasks are still carried out.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (is_default(stream) || !streams().destroy(stream)) return invalid_handle(__func__, "stream");
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (const cudaError_t error = check_outside_capture(stream, __func__); error != cudaSuccess) return error;
    return wait(__func__, open_tasks_of(tail_of(stream)));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (const cudaError_t error = check_outside_capture(stream, __func__); error != cudaSuccess) return error;
    return query(__func__, open_tasks_of(tail_of(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    if (in_kernel()) return wait_for_event_by_kernel(stream, event);
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    const EventState state = event->state();
    if (state.captured) {
        const auto capture = state.capture.lock();
        if (capture == nullptr || is_default(stream)) {
            return refuse(cudaErrorCapturedEvent, __func__,
                          "the event belongs to a capture that this stream cannot join");
        }
        if (stream->capture != nullptr && stream->capture != capture) {
            return refuse(cudaErrorStreamCaptureInvalidated, __func__,
                          "the stream is part of another capture");
        }
        stream->capture = capture;
        add_missing(stream->after, state.after);
    } else if (const auto before = tasks_of(state); !before.empty()) {
        issue_task(new_task(nullptr), tail_of(stream), before);
    } else if (state.shared != nullptr && !state.shared->has_reached(state.shared->issued())) {
        const TaskPointer task = new_task(
            [shared = state.shared, record = state.shared->issued()] {
                return shared->wait_for("cudaStreamWaitEvent", record);
            },
            true);
        task->host_function = true;  // another process may wait for this one
        issue_task(task, tail_of(stream));
    }
    return set_last_error(lost_context());
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

namespace {

StreamAttributes& attributes_of(cudaStream_t stream) {
    static StreamAttributes of_default;
    return is_default(stream) ? of_default : stream->attributes;
}

cudaError_t check_window(const cudaAccessPolicyWindow& window, const char* function) {
    if (!(window.hitRatio >= 0 && window.hitRatio <= 1))
        return refuse(cudaErrorInvalidValue, function, "hitRatio is %g; expected 0 to 1", window.hitRatio);
    if (window.missProp == cudaAccessPropertyPersisting)
        return refuse(cudaErrorInvalidValue, function,
                      "missProp is cudaAccessPropertyPersisting; expected Normal or Streaming");
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the value is null");
    switch (attribute) {
        case cudaLaunchAttributeAccessPolicyWindow:
            if (const cudaError_t error = check_window(value->accessPolicyWindow, __func__);
                error != cudaSuccess)
                return error;
            attributes_of(stream).window = value->accessPolicyWindow;
            return cudaSuccess;
        case cudaLaunchAttributeSynchronizationPolicy:
            attributes_of(stream).synchronization = value->syncPolicy;
            return cudaSuccess;
        case cudaLaunchAttributePriority:
            if (!is_default(stream))
                stream->priority = std::clamp(value->priority, kGreatestPriority, kLeastPriority);
            return cudaSuccess;
        default:
            return refuse(cudaErrorInvalidValue, __func__, "attribute %d is none of a stream", attribute);
    }
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
    if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the value to set is null");
    switch (attribute) {
        case cudaLaunchAttributeAccessPolicyWindow:
            value->accessPolicyWindow = attributes_of(stream).window;
            return cudaSuccess;
        case cudaLaunchAttributeSynchronizationPolicy:
            value->syncPolicy = attributes_of(stream).synchronization;
            return cudaSuccess;
        case cudaLaunchAttributePriority:
            return cudaStreamGetPriority(stream, &value->priority);
        default:
            return refuse(cudaErrorInvalidValue, __func__, "attribute %d is none of a stream", attribute);
    }
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    for (const cudaStream_t stream : {to, from}) {
        if (const cudaError_t error = check_stream(stream, __func__); error != cudaSuccess) return error;
    }
    attributes_of(to) = attributes_of(from);
    return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache() {
    return set_last_error(lost_context());
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned) {
    if (callback == nullptr) return refuse(cudaErrorInvalidValue, __func__, "callback is null");
    return submit(stream, __func__,
                  StreamOperation{.work = as_host_function([=] {
                                      callback(stream, cudaSuccess, user_data);
                                      return cudaSuccess;
                                  }),
                                  .type = cudaGraphNodeTypeHost,
                                  .may_wait = true,
                                  .launch = {}});
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
    if (function == nullptr) return refuse(cudaErrorInvalidValue, __func__, "function is null");
    return submit(stream, __func__, host_operation(function, user_data));
}

// --- Events --------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    if (event == nullptr) return refuse(cudaErrorInvalidValue, __func__, "event is null");
    *event = events().add(new CUevent_st(current_device(), flags));
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
    if (in_kernel()) return record_event_by_kernel(event, stream);
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (event->device != device_of(stream)) {
        return refuse(cudaErrorInvalidResourceHandle, __func__,
                      "the event belongs to device %d, and the stream to device %d", event->device,
                      device_of(stream));
    }
    if (capture != nullptr) {
        event->change([&](EventState& state) {
            state.captured = true;
            state.capture = capture;
            state.after = stream->after;
        });
        return cudaSuccess;
    }
    const std::shared_ptr<SharedEvent> shared = event->state().shared;
    const std::uint64_t record = shared != nullptr ? shared->issue() : 0;
    StreamTail& tail = tail_of(stream);
    if (waits_in(tail)) {
        const TaskPointer task = new_task(nullptr);
        auto recording = recording_by(task);
        if (shared != nullptr) {
            task->work = [work = std::move(task->work), shared, record] {
                const cudaError_t error = work();
                shared->reach(record);
                return error;
            };
        }
        issue_task(task, tail);
        // Not earlier, or another host thread could wait for a task that is in no stream yet.
        record_as(event, std::move(recording));
    } else {
        record_now(event);
        if (shared != nullptr) shared->reach(record);
    }
    return set_last_error(lost_context());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    const EventState state = event->state();
    if (state.captured)
        return refuse(cudaErrorCapturedEvent, __func__, "the event was recorded in a capture");
    const std::shared_ptr<SharedEvent> shared = state.shared;
    const std::uint64_t record = shared != nullptr ? shared->issued() : 0;
    const cudaError_t error = wait(__func__, tasks_of(state));
    if (shared == nullptr || error != cudaSuccess) return error;
    return shared->wait_for(__func__, record);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    const EventState state = event->state();
    if (state.captured)
        return refuse(cudaErrorCapturedEvent, __func__, "the event was recorded in a capture");
    const cudaError_t error = query(__func__, tasks_of(state));
    if (error != cudaSuccess || state.shared == nullptr) return error;
    const std::uint64_t record = state.shared->issued();
    if (state.shared->has_reached(record)) return cudaSuccess;
    return state.shared->is_lost(record) ? state.shared->refuse_lost(__func__)
                                         : set_last_error(cudaErrorNotReady);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
    if (handle == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the handle to set is null");
    if (!events().contains(event)) return invalid_handle(__func__, "event");
    constexpr unsigned kNeeded = cudaEventInterprocess | cudaEventDisableTiming;
    if ((event->flags & kNeeded) != kNeeded)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the event's flags are %u; expected cudaEventInterprocess | cudaEventDisableTiming",
                      event->flags);
    std::shared_ptr<SharedEvent> shared = event->state().shared;
    if (shared == nullptr) {
        wait_for(tasks_before(event));
        shared = SharedEvent::make();
        event->change([&](EventState& state) { state.shared = shared; });
    }
    if (shared == nullptr) return refuse(cudaErrorMemoryAllocation, __func__, "no memory");
    shared->tell(handle);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
    if (event == nullptr) return refuse(cudaErrorInvalidValue, __func__, "event is null");
    std::shared_ptr<SharedEvent> shared = SharedEvent::open(__func__, &handle);
    if (shared == nullptr) return cudaPeekAtLastError();
    const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventInterprocess | cudaEventDisableTiming);
    if (error == cudaSuccess) (*event)->change([&](EventState& state) { state.shared = shared; });
    return error;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (milliseconds == nullptr) return refuse(cudaErrorInvalidValue, __func__, "milliseconds is null");
    if (!events().contains(start) || !events().contains(end)) return invalid_handle(__func__, "event");
    if (start->device != end->device) {
        return refuse(cudaErrorInvalidResourceHandle, __func__,
                      "the events belong to devices %d and %d; expected one device", start->device,
                      end->device);
    }
    const std::array states = {start->state(), end->state()};
    for (std::size_t i = 0; i < 2; ++i) {
        const cudaEvent_t event = i == 0 ? start : end;
        if ((event->flags & cudaEventDisableTiming) != 0 || !states[i].recorded) {
            return refuse(cudaErrorInvalidResourceHandle, __func__,
                          "an event that was not recorded, or without timing");
        }
        if (!tasks_of(states[i]).empty()) return set_last_error(cudaErrorNotReady);
    }
    const auto time_of = [](const EventState& state) {
        return state.recording != nullptr ? state.recording->time : state.time;
    };
    *milliseconds = std::chrono::duration<float, std::milli>(time_of(states[1]) - time_of(states[0])).count();
    return set_last_error(lost_context());
}
