// Day 9, beyond: where the memory of a job comes from, and jobs without copies.
//
//   version           what is new                                   what limits it
//   malloc_each_time  device memory for each job                    cudaMalloc and cudaFree
//   stream_ordered    the stream allocates and frees                copy, kernel, copy: one after the other
//   zero_copy         the kernel reads and writes host memory       the bus, in small pieces
//   managed           the driver moves pages                        pages move, whatever they hold
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/check/check.hpp"
#include "copies_and_streams.cuh"

namespace day09 {

// --- Memory for each job -------------------------------------------------------------------------

// Idea: a job allocates its own device memory, as it must when sizes differ from job to job.
// Cost removed: none. This is the version to compare the next one with.
// Still limits it: cudaMalloc maps memory, cudaFree unmaps it, and both may wait for the whole
// device.
// Left out: owners. CUDA_CHECK throws, and memory allocated by then is leaked. Real programs use a
// class that frees it, as course::DeviceBuffer does.
void malloc_each_time(const Job& job, const Device&) {
    const std::size_t bytes = job.n * sizeof(float);
    float* in = nullptr;
    float* out = nullptr;
    CUDA_CHECK(cudaMalloc(&in, bytes));
    CUDA_CHECK(cudaMalloc(&out, bytes));
    queue_piece(job.in, in, out, job.out, job.n, job.steps, nullptr);
    CUDA_CHECK(cudaStreamSynchronize(nullptr));  // no kernel or copy uses the memory now
    CUDA_CHECK(cudaFree(in));
    CUDA_CHECK(cudaFree(out));
}

// A pool gives its free memory back to the system whenever the host waits, unless it may keep it:
// by default it may keep nothing. Called once, before the first job.
void keep_pool(const Job&, Device& device) {
    int gpu = 0;
    cudaMemPool_t pool = nullptr;
    std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
    CUDA_CHECK(cudaGetDevice(&gpu));
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, gpu));
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &device.pool_threshold));
    if (device.pool_threshold == everything) return;  // raised by another, which will lower it
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything));
    device.pool = pool;
}

// Idea: allocating and freeing are operations of the stream, too. The memory exists for the work
// that is queued between the two.
// Cost removed: mapping memory, and waiting. The second job gets the memory that the first one
// freed, from a pool.
// Still limits it: copy, kernel and copy still run one after the other.
void stream_ordered(const Job& job, const Device& device) {
    const std::size_t bytes = job.n * sizeof(float);
    const cudaStream_t stream = device.streams[0];
    float* in = nullptr;
    float* out = nullptr;
    CUDA_CHECK(cudaMallocAsync(&in, bytes, stream));
    CUDA_CHECK(cudaMallocAsync(&out, bytes, stream));
    queue_piece(job.in, in, out, job.out, job.n, job.steps, stream);
    CUDA_CHECK(cudaFreeAsync(in, stream));
    CUDA_CHECK(cudaFreeAsync(out, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

// --- No copies -----------------------------------------------------------------------------------

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
