// Empties the L2 cache of everything a kernel left in it, so that the next run starts from device
// memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_buffer.hpp"

namespace course {

class L2Flush {
  public:
    // A buffer of `bytes`; by default four times the cache, so that no replacement policy keeps old
    // lines.
    explicit L2Flush(std::size_t bytes = default_bytes());

    // Queues the flush on `stream`: writes the whole buffer, then reads it. The write alone would
    // leave the cache full of changed lines, and the next kernel would pay for writing them back.
    void operator()(cudaStream_t stream);

    static std::size_t default_bytes();

    // What the last flush wrote into every word; each flush writes a new value.
    std::uint32_t value() const { return value_; }
    const DeviceBuffer<std::uint32_t>& buffer() const { return buffer_; }

  private:
    DeviceBuffer<std::uint32_t> buffer_;
    DeviceBuffer<std::uint32_t> sink_{1};
    std::uint32_t value_ = 0;
};

}  // namespace course
