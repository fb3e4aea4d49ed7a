// What a kernel's threads call: thread.h, by way of the block runner of this OS thread.
#include "cuda_on_cpu/thread.h"

#include <cstdio>
#include <cstdlib>

#include "block.hpp"
#include "launch_state.hpp"

namespace cuda_on_cpu {

bool on_device() { return block_runner().running(); }

int block_barrier(BarrierKind kind, int predicate, Site site) { return block_runner().barrier(kind, predicate, site); }

void warp_collective(unsigned mask, void* operand, CollectiveWork work, const char* name, Site site) {
    block_runner().collective(mask, operand, work, name, site);
}

unsigned converged_lanes(Site site) { return block_runner().converged(site); }

void spin_hint() {
    if (BlockRunner& runner = block_runner(); runner.running()) runner.yield();
}

bool grid_barrier_available() { return block_runner().launch().configuration.cooperative; }

void grid_barrier(Site site) {
    BlockRunner& runner = block_runner();
    if (!grid_barrier_available()) {
        runner.fail(cudaErrorLaunchFailure, "grid sync in a kernel that was not launched with cudaLaunchCooperativeKernel",
                    site);
    }
    runner.grid_sync(site);
}

unsigned cluster_barrier_arrive(Site site) {
    BlockRunner& runner = block_runner();
    // A launch without clusters has clusters of one block, whose barrier is the block's own.
    if (runner.cluster() == nullptr) {
        runner.barrier(BarrierKind::sync, 0, site);
        return 0;
    }
    return runner.cluster()->barrier.arrive();
}

void cluster_barrier_wait(unsigned phase, Site site) {
    BlockRunner& runner = block_runner();
    if (runner.cluster() != nullptr) runner.wait_for(runner.cluster()->barrier, phase, "cluster.sync", site);
}

dim3 cluster_dimensions() {
    const ClusterState* cluster = block_runner().cluster();
    return cluster != nullptr ? cluster->dims : dim3(1, 1, 1);
}

uint3 cluster_block_index() {
    const dim3 dims = cluster_dimensions();
    return uint3{blockIdx.x % dims.x, blockIdx.y % dims.y, blockIdx.z % dims.z};
}

unsigned cluster_block_rank() {
    const dim3 dims = cluster_dimensions();
    const uint3 index = cluster_block_index();
    return (index.z * dims.y + index.y) * dims.x + index.x;
}

void* map_shared(const void* pointer, unsigned rank) {
    BlockRunner& runner = block_runner();
    auto* byte = static_cast<char*>(const_cast<void*>(pointer));
    const dim3 dims = cluster_dimensions();
    if (rank >= dims.x * dims.y * dims.z) {
        runner.fail(cudaErrorLaunchFailure, "shared memory of block " + std::to_string(rank) + " of a cluster of " +
                                                std::to_string(dims.x * dims.y * dims.z),
                    Site{"", 0});
    }
    if (runner.cluster() == nullptr) return byte;
    const ClusterState::Block& other = runner.cluster()->block[rank];
    if (runner.in_dynamic_shared(byte)) {
        return other.dynamic_arena + (byte - static_cast<char*>(runner.dynamic_shared_arena()));
    }
    return other.thread_local_base + (byte - reinterpret_cast<char*>(&threadIdx));
}

void* dynamic_shared() { return block_runner().dynamic_shared(); }
std::size_t dynamic_shared_size() { return block_runner().dynamic_shared_size(); }

void enter_shared(void* object, std::size_t size, bool poison) { block_runner().enter_shared(object, size, poison); }

void device_failure(cudaError_t error, const char* message, Site site) {
    BlockRunner& runner = block_runner();
    if (runner.running()) runner.fail(error, message, site);
    std::fprintf(stderr, "cuda_on_cpu: %s:%d: %s\n", site.file, site.line, message);
    std::abort();
}

}  // namespace cuda_on_cpu

// The C library's assert() ends here. Inside a kernel it must end the launch, not the program.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function) noexcept {
    using namespace cuda_on_cpu;
    const std::string message = std::string("Assertion `") + assertion + "' failed";
    if (BlockRunner& runner = block_runner(); runner.running()) {
        runner.fail(cudaErrorAssert, message, Site{file, static_cast<int>(line)});
    }
    std::fprintf(stderr, "%s:%u: %s: %s.\n", file, line, function, message.c_str());
    std::abort();
}
