// GPU time, measured with events. A launch only queues work and returns, so a host clock around it
// measures the queueing. An event is a mark in a stream; the GPU records the time when it reaches
// the mark.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "common/check/check.hpp"

namespace course {

class Event {
  public:
    Event() { CUDA_CHECK(cudaEventCreate(&event_)); }
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    ~Event() {
        if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
    }

    void record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream)); }
    void wait() const { CUDA_CHECK(cudaEventSynchronize(event_)); }

    // Milliseconds from `earlier` to this one, both passed; resolution about half a microsecond.
    float milliseconds_since(const Event& earlier) const {
        float milliseconds = 0;
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
        return milliseconds;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

// Times the work that is queued on `stream` between start() and stop().
class EventTimer {
  public:
    explicit EventTimer(cudaStream_t stream = nullptr) : stream_(stream) {}

    void start() { begin_.record(stream_); }
    void stop() { end_.record(stream_); }

    // Waits until the work before stop() is done. Throws CudaError when start() or stop() was not
    // called.
    float elapsed_ms() const {
        end_.wait();
        return end_.milliseconds_since(begin_);
    }

  private:
    cudaStream_t stream_;
    Event begin_;
    Event end_;
};

}  // namespace course
