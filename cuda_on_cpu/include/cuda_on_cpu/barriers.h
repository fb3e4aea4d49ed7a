// Barriers of a block and of a warp, the functions that accompany memory fences, clocks, and the
// end of a thread.
#pragma once

#include "cuda_on_cpu/thread.h"
#include "cuda_on_cpu/warp.h"

inline void __syncthreads(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::block_barrier(cuda_on_cpu::BarrierKind::sync, 0, site);
}
inline int __syncthreads_count(int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::block_barrier(cuda_on_cpu::BarrierKind::count, predicate, site);
}
inline int __syncthreads_and(int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::block_barrier(cuda_on_cpu::BarrierKind::all, predicate, site);
}
inline int __syncthreads_or(int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::block_barrier(cuda_on_cpu::BarrierKind::any, predicate, site);
}

inline void __syncwarp(unsigned mask = 0xffffffffU, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::warp_barrier(mask, site);
}

inline unsigned __activemask(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::converged_lanes(site);
}

// Nanoseconds in place of clock cycles: differences are meaningful, but not in cycles.
long long clock64();

[[noreturn]] inline void __trap(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::device_failure(cudaErrorLaunchFailure, "__trap()", site);
}
