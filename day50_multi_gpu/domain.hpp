// The parts of a domain that the versions in multi_gpu.cu and jacobi.cu use: its current device,
// its neighbours, its first and its last wait.
#pragma once

#include <cuda_runtime.h>

#include "common/check/check.hpp"
#include "multi_gpu.hpp"

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

// The neighbours of rank r; null where there is none.
const Rank* below(Domain& domain, std::size_t r);
const Rank* above(Domain& domain, std::size_t r);

// All streams of all ranks wait for the work that `stream` already has.
void begin_after(Domain& domain, cudaStream_t stream);

// `stream` waits for all streams of all ranks.
void end_before(Domain& domain, cudaStream_t stream);

}  // namespace day50
