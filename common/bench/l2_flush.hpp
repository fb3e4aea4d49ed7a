// Evicts everything that a kernel has left in the L2 cache, so that the next run reads from device
// memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_buffer.hpp"

namespace course {

class L2Flush {
  public:
    // Allocates a buffer of `bytes`. The default is four times the size of the cache, so that no
    // replacement policy keeps old lines.
    explicit L2Flush(std::size_t bytes = default_bytes());

    // Queues the flush on `stream`: writes the whole buffer, then reads it. The write alone would
    // leave the cache full of dirty lines, and the time of the next kernel would include writing
    // them back.
    void operator()(cudaStream_t stream);

    static std::size_t default_bytes();

    // The value that the last flush wrote to every word; each flush writes a new one.
    std::uint32_t value() const { return value_; }
    const DeviceBuffer<std::uint32_t>& buffer() const { return buffer_; }

  private:
    DeviceBuffer<std::uint32_t> buffer_;
    DeviceBuffer<std::uint32_t> sink_{1};
    std::uint32_t value_ = 0;
};

}  // namespace course
