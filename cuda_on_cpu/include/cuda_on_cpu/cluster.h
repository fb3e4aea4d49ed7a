// The built-in cluster functions that do not need cooperative groups. A launch without clusters has
// clusters of one block.
#pragma once

#include "cuda_on_cpu/thread.h"

inline unsigned __clusterDimIsSpecified() {
    return cuda_on_cpu::cluster_is_given() ? 1 : 0;
}
inline dim3 __clusterDim() {
    return cuda_on_cpu::cluster_dimensions();
}
inline unsigned __clusterSizeInBlocks() {
    const dim3 extent = cuda_on_cpu::cluster_dimensions();
    return extent.x * extent.y * extent.z;
}
inline dim3 __clusterRelativeBlockIdx() {
    return cuda_on_cpu::cluster_block_index();
}
inline unsigned __clusterRelativeBlockRank() {
    return cuda_on_cpu::cluster_block_rank();
}

// The extent of the grid in clusters.
inline dim3 __clusterGridDimInClusters() {
    const dim3 extent = cuda_on_cpu::cluster_dimensions();
    return dim3(gridDim.x / extent.x, gridDim.y / extent.y, gridDim.z / extent.z);
}
inline dim3 __clusterIdx() {
    const dim3 extent = cuda_on_cpu::cluster_dimensions();
    return dim3(blockIdx.x / extent.x, blockIdx.y / extent.y, blockIdx.z / extent.z);
}

inline void __cluster_barrier_arrive(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::cluster_barrier_arrive(site);
}
inline void __cluster_barrier_arrive_relaxed(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::cluster_barrier_arrive(site);
}
inline void __cluster_barrier_wait(cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::cluster_barrier_wait(site);
}

inline void* __cluster_map_shared_rank(const void* pointer, unsigned rank,
                                       cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::map_shared(pointer, rank, site);
}
inline unsigned __cluster_query_shared_rank(const void* pointer,
                                            cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::shared_rank(pointer, site);
}

inline void __threadfence_cluster() {
    cuda_on_cpu::atomic_fence(cuda_on_cpu::MemoryOrder::seq_cst);
}
