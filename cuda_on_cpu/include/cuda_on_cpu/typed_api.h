// Typed forms of the functions of the runtime API on memory and symbols. Part of cuda_runtime.h,
// also for host code with a standard older than C++20.
#pragma once

#include <cstddef>
#include <type_traits>

#include "cuda_on_cpu/host_shadow.h"
#include "cuda_runtime_api.h"

// C-style casts, so that pointers to const can be set, too.
template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
    return cudaMalloc((void**)(pointer), bytes);
}
template <class T>
cudaError_t cudaMallocPitch(T** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    return cudaMallocPitch((void**)(pointer), pitch, width, height);
}
template <class T>
cudaError_t cudaMallocManaged(T** pointer, std::size_t bytes, unsigned flags = cudaMemAttachGlobal) {
    return cudaMallocManaged((void**)(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync((void**)(pointer), bytes, stream);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync((void**)(pointer), bytes, pool, stream);
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T** pointer, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync((void**)(pointer), bytes, pool, stream);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes, unsigned flags = cudaHostAllocDefault) {
    return cudaMallocHost((void**)(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned flags) {
    return cudaHostAlloc((void**)(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device_pointer, void* host_pointer, unsigned flags) {
    return cudaHostGetDevicePointer((void**)(device_pointer), host_pointer, flags);
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
    return cudaEventCreateWithFlags(event, flags);
}

namespace cuda_on_cpu {
cudaError_t copy_to_symbol(void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool returns_early);
cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                             bool returns_early);
cudaError_t check_symbol_place(const char* function, const volatile void* symbol);
}  // namespace cuda_on_cpu

// A symbol is the variable itself, so its address and size are known here.
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return cuda_on_cpu::copy_to_symbol(const_cast<T*>(&symbol), sizeof symbol, from, bytes, offset, kind,
                                       nullptr, false);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    return cuda_on_cpu::copy_to_symbol(const_cast<T*>(&symbol), sizeof symbol, from, bytes, offset, kind,
                                       stream, true);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return cuda_on_cpu::copy_from_symbol(to, &symbol, sizeof symbol, bytes, offset, kind, nullptr, false);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    return cuda_on_cpu::copy_from_symbol(to, &symbol, sizeof symbol, bytes, offset, kind, stream, true);
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
    const cudaError_t error = cuda_on_cpu::check_symbol_place("cudaGetSymbolAddress", &symbol);
    if (error == cudaSuccess) *address = const_cast<std::remove_const_t<T>*>(&symbol);
    return error;
}
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t* size, const T& symbol) {
    const cudaError_t error = cuda_on_cpu::check_symbol_place("cudaGetSymbolSize", &symbol);
    if (error == cudaSuccess) *size = sizeof symbol;
    return error;
}
