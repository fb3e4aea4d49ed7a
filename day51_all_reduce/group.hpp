// Code that the versions share and that is not part of the lesson: which device is the current one.
#pragma once

#include <cuda_runtime.h>

#include "common/check/check.hpp"

namespace day51 {

// Makes a device the current one; at the end of the scope the previous one is current again.
class OnDevice {
  public:
    explicit OnDevice(int device) {
        CUDA_CHECK(cudaGetDevice(&before_));
        changed_ = device != before_;
        if (changed_) CUDA_CHECK(cudaSetDevice(device));
    }
    ~OnDevice() {
        if (changed_) static_cast<void>(cudaSetDevice(before_));
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

  private:
    int before_ = 0;
    bool changed_ = false;
};

}  // namespace day51
