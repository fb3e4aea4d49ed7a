// Day 39, beyond: what does a launch cost? Each version launches `n` tiny grids, one after another,
// and each grid adds 1 to a counter.
//
//   version        who launches                                       order
//   host_stream    the host                                           a stream
//   host_graph     the host, all at once: a CUDA graph (day 9)        edges of the graph
//   programmatic   the host; a grid begins while the last one ends    a stream
//   child          one thread of a kernel                             the default stream of its block
//   tail           each grid launches the next one                    a tail launch
//   device_graph   each graph launches itself again                   a tail launch of the graph
//   while_node     a node of a graph repeats its body                 the node
#pragma once

#include <cuda_runtime.h>

#include "../pending.hpp"
#include "common/device/launch.hpp"

namespace day39 {

__global__ void add_one(unsigned* counter) {
    ++*counter;
}

inline void launch_host_stream(unsigned n, unsigned* counter, cudaStream_t stream) {
    for (unsigned i = 0; i < n; ++i)
        add_one<<<1, 1, 0, stream>>>(counter);
}

// Programmatic dependent launch: the next grid may begin as soon as all blocks of this one have
// called cudaTriggerProgrammaticLaunchCompletion(). It waits until this one is complete before it
// uses what that has written. Older GPUs than Hopper, for which launch_early() launches as usual,
// have no such instructions.
__global__ void add_one_overlapped(unsigned* counter) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    ++*counter;
}

inline void launch_programmatic(unsigned n, unsigned* counter, cudaStream_t stream) {
    for (unsigned i = 0; i < n; ++i)
        course::launch_early(add_one_overlapped, {.grid = dim3(1), .block = dim3(1), .stream = stream},
                             counter);
}

__global__ void launch_children(unsigned n, unsigned* counter) {
    for (unsigned i = 0; i < n; ++i)
        add_one<<<1, 1>>>(counter);
}

inline void launch_child(unsigned n, unsigned* counter, cudaStream_t stream) {
    allow_pending(n);
    launch_children<<<1, 1, 0, stream>>>(n, counter);
}

__global__ void add_one_and_follow(unsigned n, unsigned* counter) {
    if (++*counter < n) add_one_and_follow<<<1, 1, 0, cudaStreamTailLaunch>>>(n, counter);
}

inline void launch_tail(unsigned n, unsigned* counter, cudaStream_t stream) {
    if (n > 0) add_one_and_follow<<<1, 1, 0, stream>>>(n, counter);
}

// Of a graph that was made with cudaGraphInstantiateFlagDeviceLaunch.
__global__ void add_one_and_relaunch(unsigned n, unsigned* counter) {
    if (++*counter < n) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

// Of the body of a while node.
__global__ void add_one_and_repeat(unsigned n, unsigned* counter, cudaGraphConditionalHandle go_on) {
    cudaGraphSetConditional(go_on, ++*counter < n ? 1 : 0);
}

}  // namespace day39
