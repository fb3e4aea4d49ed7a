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

// To access one element of a policy's temporary memory, Thrust names the policy by a reference to
// null. From the reference alone the compiler would conclude that there is a policy.
inline cudaStream_t stream_of(const par_t& policy) {
    const par_t* address = &policy;
    asm("" : "+r"(address));
    return address == nullptr ? nullptr : address->stream;
}

}  // namespace cuda
}  // namespace system

namespace cuda {
using system::cuda::execution_policy;
using system::cuda::par;
using system::cuda::par_nosync;
using system::cuda::tag;
}  // namespace cuda
THRUST_NAMESPACE_END

CUDA_ON_CPU_THRUST_POLICY(thrust::system::cuda::par_t, thrust::system::cuda::stream_of(policy))
