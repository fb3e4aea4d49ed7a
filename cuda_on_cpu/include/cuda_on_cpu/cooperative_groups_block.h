// The groups that are larger than a warp: block, cluster, grid.
#pragma once

#include "cuda_on_cpu/cluster.h"
#include "cuda_on_cpu/cooperative_groups_thread_group.h"

namespace cooperative_groups {

class thread_block : public thread_group {
  public:
    struct arrival_token {};

    thread_block() : thread_group(details::GroupKind::block) {}

    static void sync(Site site = Site::here()) {
        cuda_on_cpu::block_barrier(cuda_on_cpu::BarrierKind::sync, 0, site);
    }
    // A barrier in two halves: between them a thread can do work on which the other threads do not
    // depend.
    [[nodiscard]] arrival_token barrier_arrive(Site site = Site::here()) const {
        cuda_on_cpu::block_barrier_arrive(site);
        return {};
    }
    void barrier_wait(arrival_token&&, Site site = Site::here()) const {
        cuda_on_cpu::block_barrier_wait(site);
    }

    static unsigned thread_rank() { return details::linear(threadIdx, blockDim); }
    static unsigned num_threads() { return details::volume(blockDim); }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
};

inline thread_block this_thread_block() {
    return {};
}

// Shared memory that tiles of several warps need on GPUs before compute capability 8.0; here it is
// not used.
template <unsigned MaxBlockSize = 1024>
struct block_tile_memory {
    void* of_warp[(MaxBlockSize + 31) / 32];
};
template <unsigned MaxBlockSize>
thread_block this_thread_block(block_tile_memory<MaxBlockSize>&) {
    return {};
}

// Blocks that run at the same time and reach each other's shared memory.
class cluster_group : public thread_group {
  public:
    struct arrival_token {};

    cluster_group() : thread_group(details::GroupKind::cluster) {}

    static void sync(Site site = Site::here()) {
        cuda_on_cpu::cluster_barrier_arrive(site);
        cuda_on_cpu::cluster_barrier_wait(site);
    }
    static arrival_token barrier_arrive(Site site = Site::here()) {
        cuda_on_cpu::cluster_barrier_arrive(site);
        return {};
    }
    static void barrier_wait(Site site = Site::here()) { cuda_on_cpu::cluster_barrier_wait(site); }
    static void barrier_wait(arrival_token&&, Site site = Site::here()) {
        cuda_on_cpu::cluster_barrier_wait(site);
    }

    // Returns the address, in the block with that rank, of the object to which `pointer` points in
    // the calling thread's block.
    template <class T>
    static T* map_shared_rank(T* pointer, int rank, Site site = Site::here()) {
        return static_cast<T*>(cuda_on_cpu::map_shared(pointer, static_cast<unsigned>(rank), site));
    }
    // The rank of the block whose shared memory `pointer` points to.
    static unsigned query_shared_rank(const void* pointer, Site site = Site::here()) {
        return cuda_on_cpu::shared_rank(pointer, site);
    }

    static dim3 block_index() { return __clusterRelativeBlockIdx(); }
    static unsigned block_rank() { return __clusterRelativeBlockRank(); }
    static dim3 dim_blocks() { return __clusterDim(); }
    static unsigned num_blocks() { return __clusterSizeInBlocks(); }

    static dim3 thread_index() {
        const dim3 block = block_index();
        return dim3(block.x * blockDim.x + threadIdx.x, block.y * blockDim.y + threadIdx.y,
                    block.z * blockDim.z + threadIdx.z);
    }
    static unsigned thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static dim3 dim_threads() {
        const dim3 blocks = dim_blocks();
        return dim3(blocks.x * blockDim.x, blocks.y * blockDim.y, blocks.z * blockDim.z);
    }
    static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned size() { return num_threads(); }
};

inline cluster_group this_cluster() {
    return {};
}

class grid_group : public thread_group {
  public:
    grid_group() : thread_group(details::GroupKind::grid) {}

    // Whether the grid can synchronise, which needs a cooperative launch.
    bool is_valid() const { return cuda_on_cpu::grid_barrier_available(); }
    void sync(Site site = Site::here()) const { cuda_on_cpu::grid_barrier(site); }

    static dim3 block_index() { return blockIdx; }
    static unsigned long long block_rank() { return details::linear<unsigned long long>(blockIdx, gridDim); }
    static dim3 dim_blocks() { return gridDim; }
    static unsigned long long num_blocks() { return details::volume<unsigned long long>(gridDim); }
    static dim3 group_dim() { return gridDim; }

    static dim3 cluster_index() { return __clusterIdx(); }
    static unsigned long long cluster_rank() {
        return details::linear<unsigned long long>(cluster_index(), dim_clusters());
    }
    static dim3 dim_clusters() { return __clusterGridDimInClusters(); }
    static unsigned long long num_clusters() { return details::volume<unsigned long long>(dim_clusters()); }

    static dim3 thread_index() {
        return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                    blockIdx.z * blockDim.z + threadIdx.z);
    }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static dim3 dim_threads() {
        return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
};

inline grid_group this_grid() {
    return {};
}

}  // namespace cooperative_groups
