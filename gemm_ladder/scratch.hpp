// Owns the scratch memory of a step.
#pragma once

#include "common/device/device_buffer.hpp"
#include "sgemm.hpp"

namespace gemm {

class ScratchMemory {
  public:
    ScratchMemory() = default;
    // Enough for `size`; the tickets are zero.
    explicit ScratchMemory(const ScratchSize& size);

    Scratch view();

  private:
    course::DeviceBuffer<float> partial_;
    course::DeviceBuffer<unsigned> tickets_;
};

}  // namespace gemm
