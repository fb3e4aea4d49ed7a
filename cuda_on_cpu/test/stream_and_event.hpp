// A stream and an event that end with their scope.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

class Stream {
  public:
    explicit Stream(unsigned flags = cudaStreamNonBlocking) {
        EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
    }
    ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    explicit Event(unsigned flags = cudaEventDefault) {
        EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
    }
    ~Event() { EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};
