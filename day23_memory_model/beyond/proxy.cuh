// Day 23, beyond: two proxies. Threads write a tile to shared memory through the generic proxy, and
// a bulk copy reads it through the async proxy (compute capability 9.0).
#pragma once

#include <cuda_runtime.h>

#include "common/device/ptx_hopper.cuh"

namespace day23 {

constexpr int kCopied = 256;  // elements of a tile, and threads of a block

enum class ProxyFence { kNone, kEach };

// Idea: out[i] = 2 in[i], and one bulk copy stores the tile of a block.
// Cost removed: the stores of the threads. One thread issues one instruction.
// Still limits it: not measured yet.
//
// Each thread's fence makes its own write visible to the async proxy. After the barrier, all have
// done so. With kNone, the barrier orders the writes for threads only.
template <ProxyFence kFence>
__global__ void __launch_bounds__(kCopied) proxy_copy(const int* in, int* out) {
    alignas(16) __shared__ int values[kCopied];
    const unsigned first = blockIdx.x * kCopied;
    values[threadIdx.x] = 2 * in[first + threadIdx.x];
    if constexpr (kFence == ProxyFence::kEach) course::ptx::fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        course::ptx::bulk_store(out + first, values, sizeof(values));
        course::ptx::tma_store_commit();
        course::ptx::tma_store_wait<0>();  // the copy has read the tile, which ends with the block
    }
}

template <ProxyFence kFence>
void launch_proxy_copy(const int* in, int* out, unsigned tiles, cudaStream_t stream) {
    proxy_copy<kFence><<<tiles, kCopied, 0, stream>>>(in, out);
}

}  // namespace day23
