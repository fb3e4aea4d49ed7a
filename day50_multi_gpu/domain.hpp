// A scope in which another device is the current one.
#pragma once

#include <cuda_runtime.h>

#include "common/check/check.hpp"

namespace day50 {

// Makes `device` the current one until the end of the scope.
class OnDevice {
  public:
    explicit OnDevice(int device) {
        CUDA_CHECK(cudaGetDevice(&before_));
        CUDA_CHECK(cudaSetDevice(device));
    }
    ~OnDevice() { static_cast<void>(cudaSetDevice(before_)); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

  private:
    int before_ = 0;
};

}  // namespace day50
