// Errors of the CUDA runtime as thrust::system_error.
#pragma once

#include <thrust/system/cuda/begin.h>
#include <thrust/system/error_code.h>
#include <thrust/system/system_error.h>

#include "cuda_runtime_api.h"

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda_on_cpu_detail {

class cuda_category final : public error_category {
  public:
    const char* name() const override { return "cuda"; }
    std::string message(int error) const override {
        const auto code = static_cast<cudaError_t>(error);
        return std::string(cudaGetErrorName(code)) + ": " + cudaGetErrorString(code);
    }
};

}  // namespace cuda_on_cpu_detail

inline const error_category& cuda_category() {
    static const cuda_on_cpu_detail::cuda_category category;
    return category;
}
}  // namespace system

using system::cuda_category;
THRUST_NAMESPACE_END

namespace cuda_on_cpu {

inline const bool thrust_throws_system_error = [] {
    throw_thrust_error = [](cudaError_t error) {
        throw thrust::system_error(static_cast<int>(error), thrust::cuda_category());
    };
    return true;
}();

}  // namespace cuda_on_cpu
