// Day 9, beyond: device memory for each job.
//
//   version           what is new                          what limits it
//   malloc_each_time  device memory for each job           cudaMalloc and cudaFree
//   stream_ordered    the stream allocates and frees       copy, kernel, copy: one after the other
//
//   ./course run day09 --only stream_ordered
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/check/check.hpp"
#include "copies_and_streams.cuh"

namespace day09 {

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

}  // namespace day09
