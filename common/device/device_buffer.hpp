// DeviceBuffer<T>: device memory with an owner. It is freed when the owner goes, and can be moved
// but not copied.
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

// `count` elements of `element_bytes` each; nullptr for none. Throws std::length_error when the
// product does not fit in std::size_t, and CudaError naming the bytes asked for and the bytes free
// when the device has not got them.
void* allocate_on_device(std::size_t count, std::size_t element_bytes);
void free_on_device(void* memory, std::size_t bytes);

// What all DeviceBuffers of this process hold. (cudaMemGetInfo also counts what others hold.)
std::size_t device_buffer_bytes();

// Both return when the copy is done, after everything queued on `stream` before it. (Copies that
// overlap with work need cudaMemcpyAsync and pinned memory, and are a lesson of their own.) Throws
// std::invalid_argument unless both sides have the same length.
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

    // The buffer seen as a matrix; throws std::invalid_argument when it is too small for that.
    DeviceMatrix<T> matrix(std::size_t rows, std::size_t cols) { return {span(), rows, cols}; }
    DeviceMatrix<const T> matrix(std::size_t rows, std::size_t cols) const { return {span(), rows, cols}; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace course
