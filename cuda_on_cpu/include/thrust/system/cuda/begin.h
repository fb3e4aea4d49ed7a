// Each algorithm of Thrust casts its policy to the derived type before it begins: there it waits
// for its stream.
#pragma once

#include <thrust/detail/execution_policy.h>

#include <stdexcept>

#include "cuda_on_cpu/host_work.h"
#include "cuda_runtime_api.h"

namespace cuda_on_cpu {

// An earlier kernel has failed. system/cuda/error.h, which cannot be included here, makes it throw
// thrust::system_error.
inline void (*throw_thrust_error)(cudaError_t) = [](cudaError_t error) {
    throw std::runtime_error(cudaGetErrorString(error));
};

inline void begin_thrust_algorithm(cudaStream_t stream) {
    if (const cudaError_t error = begin_host_work(stream); error != cudaSuccess) throw_thrust_error(error);
}

}  // namespace cuda_on_cpu

// `Policy` runs algorithms in `stream`, an expression in which `policy` is the policy.
#define CUDA_ON_CPU_THRUST_POLICY(Policy, stream)                                  \
    THRUST_NAMESPACE_BEGIN                                                         \
    namespace detail {                                                             \
    template <>                                                                    \
    inline Policy& derived_cast(execution_policy_base<Policy>& base) {             \
        [[maybe_unused]] auto& policy = static_cast<Policy&>(base);                \
        cuda_on_cpu::begin_thrust_algorithm(stream);                               \
        return policy;                                                             \
    }                                                                              \
    template <>                                                                    \
    inline const Policy& derived_cast(const execution_policy_base<Policy>& base) { \
        [[maybe_unused]] const auto& policy = static_cast<const Policy&>(base);    \
        cuda_on_cpu::begin_thrust_algorithm(stream);                               \
        return policy;                                                             \
    }                                                                              \
    }                                                                              \
    THRUST_NAMESPACE_END
