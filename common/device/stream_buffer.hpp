// Memory from CUDA's pool, allocated and freed in stream order.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"

namespace course {

template <class T>
class StreamBuffer {
  public:
    // `count` elements, uninitialised. Throws CudaError if there is too little memory.
    StreamBuffer(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
        CUDA_CHECK(cudaMallocAsync(&data_, count * sizeof(T), stream));
    }
    StreamBuffer(const StreamBuffer&) = delete;
    StreamBuffer& operator=(const StreamBuffer&) = delete;
    ~StreamBuffer() { static_cast<void>(cudaFreeAsync(data_, stream_)); }

    T* data() const { return data_; }
    DeviceSpan<T> span() const { return DeviceSpan<T>::from_device_pointer(data_, count_); }

    // Queues a memset that sets all bytes to 0.
    void clear() const { CUDA_CHECK(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream_)); }

  private:
    T* data_ = nullptr;
    std::size_t count_;
    cudaStream_t stream_;
};

}  // namespace course
