// Day 37, beyond: transforms of all points of a grid by cuFFT, in place.
#pragma once

#ifdef COURSE_HAS_CUFFT

#include <cuda_runtime.h>
#include <cufft.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "grid.hpp"

namespace day37 {

// Lack of memory throws CudaError, as it does elsewhere; another failure std::runtime_error.
inline void check_cufft(cufftResult code, const char* call) {
    if (code == CUFFT_SUCCESS) return;
    const std::string message =
        std::string(call) + " failed with cufftResult " + std::to_string(static_cast<int>(code));
    if (code == CUFFT_ALLOC_FAILED) throw course::CudaError(cudaErrorMemoryAllocation, message);
    throw std::runtime_error(message);
}

class CufftPlan {
  public:
    explicit CufftPlan(const Grid& points) {
        std::vector<int> extents;  // slowest first; axes of one point need no transform
        for (const std::size_t n : {points.nz, points.ny, points.nx})
            if (n > 1) extents.push_back(static_cast<int>(n));
        if (extents.empty()) return;
        check_cufft(cufftPlanMany(&plan_, static_cast<int>(extents.size()), extents.data(), nullptr, 1, 0,
                                  nullptr, 1, 0, CUFFT_C2C, 1),
                    "cufftPlanMany");
        made_ = true;
    }
    CufftPlan(const CufftPlan&) = delete;
    CufftPlan& operator=(const CufftPlan&) = delete;
    ~CufftPlan() {
        if (made_) static_cast<void>(cufftDestroy(plan_));
    }

    // `direction`: CUFFT_FORWARD or CUFFT_INVERSE.
    void run(float2* points, int direction, cudaStream_t stream) const {
        if (!made_) return;
        check_cufft(cufftSetStream(plan_, stream), "cufftSetStream");
        check_cufft(cufftExecC2C(plan_, points, points, direction), "cufftExecC2C");
    }

  private:
    cufftHandle plan_ = 0;
    bool made_ = false;
};

}  // namespace day37

#endif
