// An output buffer that detects wrong writes and missing writes of a kernel. The payload starts as
// NaN (unwritten.hpp), so that unwritten elements do not pass for results. It lies between two
// guards of known bytes, so that writes out of range are detected. They are NaN, too, where T is a
// floating-point type: a sum that reads one is NaN.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/unwritten.hpp"
#include "common/device/device_buffer.hpp"

namespace course {

namespace detail {

inline constexpr std::size_t kGuardBytes = 256;  // a multiple of the alignment of cudaMalloc

// Fills a buffer that consists of guard, payload and guard, in this order. The payload is filled
// with copies of `element`, the guards with copies of `guard` from the beginning of the memory on.
void arm_guards(DeviceBuffer<std::byte>& memory, std::size_t payload_offset, std::size_t payload_bytes,
                std::span<const std::byte> element, std::span<const std::byte> guard);
std::string find_guard_damage(const DeviceBuffer<std::byte>& memory, std::size_t payload_offset,
                              std::size_t payload_bytes, std::span<const std::byte> guard);

}  // namespace detail

template <class T>
class GuardedBuffer {
    static_assert(std::is_trivially_copyable_v<T>, "GuardedBuffer<T>: T must be trivially copyable");

  public:
    // `size` elements, the first of them `misaligned_by` elements after an address aligned to 256
    // bytes.
    explicit GuardedBuffer(std::size_t size, std::size_t misaligned_by = 0)
        : size_(size),
          offset_(detail::kGuardBytes + misaligned_by * sizeof(T)),
          memory_(total_bytes(size, offset_)) {
        spoil();
    }

    // Fills the payload with NaN again and renews the guards.
    void spoil() {
        detail::arm_guards(memory_, offset_, size_ * sizeof(T), unwritten_bytes<T>(), guard_bytes<T>());
    }

    // Describes writes outside of the payload; empty if there are none. Waits for the device.
    std::string damage() const {
        return detail::find_guard_damage(memory_, offset_, size_ * sizeof(T), guard_bytes<T>());
    }

    std::size_t size() const { return size_; }
    T* data() { return reinterpret_cast<T*>(memory_.data() + offset_); }
    DeviceSpan<T> span() { return DeviceSpan<T>::from_device_pointer(data(), size_); }
    DeviceMatrix<T> matrix(std::size_t rows, std::size_t cols) { return {span(), rows, cols}; }

    void copy_from(std::span<const T> host) {
        copy_host_to_device(data(), size_, host.data(), host.size(), sizeof(T), nullptr);
    }

    std::vector<T> to_host() const {
        std::vector<T> host(size_);
        copy_device_to_host(host.data(), size_, memory_.data() + offset_, size_, sizeof(T), nullptr);
        return host;
    }

  private:
    static std::size_t total_bytes(std::size_t size, std::size_t offset);

    std::size_t size_;
    std::size_t offset_;
    DeviceBuffer<std::byte> memory_;
};

template <class T>
std::size_t GuardedBuffer<T>::total_bytes(std::size_t size, std::size_t offset) {
    constexpr std::size_t kMost = static_cast<std::size_t>(-1);
    if (size > (kMost - offset - 2 * detail::kGuardBytes) / sizeof(T)) {
        throw std::length_error("GuardedBuffer: " + std::to_string(size) + " elements of " +
                                std::to_string(sizeof(T)) + " bytes are more bytes than can be counted");
    }
    // A whole number of guards, so that both ends of the memory are aligned.
    const std::size_t guards = (offset + size * sizeof(T)) / detail::kGuardBytes + 2;
    return guards * detail::kGuardBytes;
}

extern template class GuardedBuffer<float>;  // compiled in guarded_buffer.cpp

}  // namespace course
