// thrust::cuda::par and par.on(stream).
#pragma once

#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/cuda/begin.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {

template <class Derived>
using execution_policy = thrust::system::cpp::detail::execution_policy<Derived>;
using tag = thrust::system::cpp::tag;

// An allocator for temporary memory is taken, and not used: that memory is the host's.
struct par_t : execution_policy<par_t> {
    cudaStream_t stream = nullptr;

    par_t on(cudaStream_t other) const {
        par_t policy = *this;
        policy.stream = other;
        return policy;
    }
    template <class Allocator>
    par_t operator()(Allocator&&) const {
        return *this;
    }
};

inline const par_t par;
inline const par_t par_nosync;

}  // namespace cuda
}  // namespace system

namespace cuda {
using system::cuda::execution_policy;
using system::cuda::par;
using system::cuda::par_nosync;
using system::cuda::tag;
}  // namespace cuda
THRUST_NAMESPACE_END

CUDA_ON_CPU_THRUST_POLICY(thrust::system::cuda::par_t, policy.stream)
