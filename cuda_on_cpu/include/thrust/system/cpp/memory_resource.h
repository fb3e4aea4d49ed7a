// Memory of device vectors comes from cudaMalloc, so that kernels can use it; that of universal
// vectors is managed.
#pragma once

#include <thrust/detail/config.h>
#include <thrust/mr/fancy_pointer_resource.h>
#include <thrust/system/cpp/pointer.h>
#include <thrust/system/detail/bad_alloc.h>

#include "cuda_runtime_api.h"

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cpp {
namespace detail {

enum class kind { device, managed, pinned };

template <kind Kind>
class runtime_memory_resource final : public thrust::mr::memory_resource<> {
  public:
    void* do_allocate(std::size_t bytes, std::size_t) override {
        void* pointer = nullptr;
        const cudaError_t error = Kind == kind::device    ? cudaMalloc(&pointer, bytes)
                                  : Kind == kind::managed ? cudaMallocManaged(&pointer, bytes)
                                                          : cudaMallocHost(&pointer, bytes);
        if (error != cudaSuccess) {
            cudaGetLastError();
            throw thrust::system::detail::bad_alloc(cudaGetErrorString(error));
        }
        return pointer;
    }
    void do_deallocate(void* pointer, std::size_t, std::size_t) override {
        Kind == kind::pinned ? cudaFreeHost(pointer) : cudaFree(pointer);
    }
};

}  // namespace detail

using memory_resource =
    thrust::mr::fancy_pointer_resource<detail::runtime_memory_resource<detail::kind::device>, pointer<void>>;
using universal_memory_resource =
    thrust::mr::fancy_pointer_resource<detail::runtime_memory_resource<detail::kind::managed>,
                                       universal_pointer<void>>;
using universal_host_pinned_memory_resource =
    thrust::mr::fancy_pointer_resource<detail::runtime_memory_resource<detail::kind::pinned>, pointer<void>>;

}  // namespace cpp
}  // namespace system
THRUST_NAMESPACE_END
