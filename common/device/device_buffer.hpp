// DeviceBuffer<T>: device memory with an owner. It is freed when the owner is destroyed. It can be
// moved, but not copied.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"

namespace course {

// Allocates `count` elements of `element_bytes` each; returns nullptr for 0 elements. Throws
// std::length_error when the product overflows std::size_t, and CudaError with the requested and
// the free bytes when the device has too little memory.
void* allocate_on_device(std::size_t count, std::size_t element_bytes);
void free_on_device(void* memory, std::size_t bytes);

// The memory of all DeviceBuffers of this process. (cudaMemGetInfo also counts other allocations
// and other processes.)
std::size_t device_buffer_bytes();

// Both copy after all work queued on `stream`, and return when the copy is complete. (Copies that
// overlap with work need cudaMemcpyAsync and pinned memory, and are a lesson of their own.) They
// throw std::invalid_argument unless both sides have the same length.
void copy_host_to_device(void* device, std::size_t device_count, const void* host, std::size_t host_count,
                         std::size_t element_bytes, cudaStream_t stream);
void copy_device_to_host(void* host, std::size_t host_count, const void* device, std::size_t device_count,
                         std::size_t element_bytes, cudaStream_t stream);

template <class T>
class DeviceBuffer {
    static_assert(
        std::is_trivially_copyable_v<T>,
        "DeviceBuffer<T>: T travels between host and device byte by byte, so it must be trivially copyable");

  public:
    DeviceBuffer() = default;

    // `size` elements, uninitialised. 0 is legal.
    explicit DeviceBuffer(std::size_t size)
        : data_(static_cast<T*>(allocate_on_device(size, sizeof(T)))), size_(size) {}

    // A copy of host data.
    explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) { copy_from(host); }

    DeviceBuffer(DeviceBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }

    ~DeviceBuffer() {
        if (data_ != nullptr) free_on_device(data_, bytes());
    }

    void copy_from(std::span<const T> host, cudaStream_t stream = nullptr) {
        copy_host_to_device(data_, size_, host.data(), host.size(), sizeof(T), stream);
    }

    void copy_to(std::span<T> host, cudaStream_t stream = nullptr) const {
        copy_device_to_host(host.data(), host.size(), data_, size_, sizeof(T), stream);
    }

    std::vector<T> to_host(cudaStream_t stream = nullptr) const {
        std::vector<T> host(size_);
        copy_to(host, stream);
        return host;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return size_ * sizeof(T); }

    DeviceSpan<T> span() { return DeviceSpan<T>::from_device_pointer(data_, size_); }
    DeviceSpan<const T> span() const { return DeviceSpan<const T>::from_device_pointer(data_, size_); }

    // A view of the buffer as a matrix. Throws std::invalid_argument when the buffer is too small.
    DeviceMatrix<T> matrix(std::size_t rows, std::size_t cols) { return {span(), rows, cols}; }
    DeviceMatrix<const T> matrix(std::size_t rows, std::size_t cols) const { return {span(), rows, cols}; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace course
