// Day 9, beyond: the program copies nothing.
//
//   version    what is new                                what limits it
//   zero_copy  the kernel reads and writes host memory    the bus, in small pieces
//   managed    the driver moves pages                     pages move, whatever they hold
//
//   ./course run day09 --only zero_copy
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"
#include "copies_and_streams.cuh"

namespace day09 {

// The host memory of `managed`.
float* allocate_managed(std::size_t n) {
    float* data = nullptr;
    CUDA_CHECK(cudaMallocManaged(&data, n * sizeof(float)));
    return data;
}

// Idea: pinned memory has an address on the device as well. The kernel loads from it and stores to
// it across the bus.
// Cost removed: device memory, and filling and draining the pipeline of chunks. Threads load,
// compute and store at the same time, so both directions of the bus are busy from the first warp to
// the last.
// Still limits it: the bus. An element that is read twice may cross it twice, so this suits data
// that is used once.
void zero_copy(const Job& job, const Device& device) {
    float* in = nullptr;
    float* out = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&in, const_cast<float*>(job.in), 0));
    CUDA_CHECK(cudaHostGetDevicePointer(&out, job.out, 0));
    launch_iterate(in, out, job.n, job.steps, device.streams[0]);
    CUDA_CHECK(cudaStreamSynchronize(device.streams[0]));
}

// Asks the driver to move the pages of managed memory to a device, or to the host
// (cudaCpuDeviceId).
void prefetch(const float* data, std::size_t n, int to, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    const auto type = to == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    CUDA_CHECK(cudaMemPrefetchAsync(data, n * sizeof(float), {type, to}, 0, stream));
#else
    CUDA_CHECK(cudaMemPrefetchAsync(data, n * sizeof(float), to, stream));
#endif
}

// Idea: one pointer for both sides. A page moves to where it is accessed; a prefetch moves it
// beforehand.
// Cost removed: the copies in the program, and one page fault after the other.
// Still limits it: pages move, whatever they hold. `out` is moved to the device although its old
// content is never read, and `in` has to be moved back before the host can use it again: twice the
// bytes, one prefetch after the other. And for each page the driver changes two page tables.
void managed(const Job& job, const Device& device) {
    const cudaStream_t stream = device.streams[0];
    int gpu = 0;
    CUDA_CHECK(cudaGetDevice(&gpu));
    prefetch(job.in, job.n, gpu, stream);
    prefetch(job.out, job.n, gpu, stream);
    launch_iterate(job.in, job.out, job.n, job.steps, stream);
    prefetch(job.out, job.n, cudaCpuDeviceId, stream);
    prefetch(job.in, job.n, cudaCpuDeviceId, stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace day09
