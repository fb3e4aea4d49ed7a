// Memory from cudaMalloc, so that kernels can use it.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <thrust/detail/config.h>
#include <thrust/device_ptr.h>
#include <thrust/system/detail/bad_alloc.h>
#include <thrust/system_error.h>

#include "cuda_runtime_api.h"

THRUST_NAMESPACE_BEGIN

inline device_ptr<void> device_malloc(const std::size_t bytes) {
    void* pointer = nullptr;
    if (const cudaError_t error = cudaMalloc(&pointer, bytes); error != cudaSuccess) {
        cudaGetLastError();
        throw thrust::system::detail::bad_alloc(cudaGetErrorString(error));
    }
    return device_ptr<void>(pointer);
}

template <typename T>
device_ptr<T> device_malloc(const std::size_t count) {
    return device_ptr<T>(static_cast<T*>(device_malloc(count * sizeof(T)).get()));
}

THRUST_NAMESPACE_END

#include "cuda_on_cpu/macros_back.h"
