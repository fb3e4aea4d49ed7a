// Launches of kernels for Hopper: clusters, persistent grids, and why a kernel cannot run here.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace course {

inline std::string why_no_hopper() {
    int device = 0;
    int major = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    if (major == 9) return "";
    return "needs compute capability 9.0 (Hopper); this GPU has " + std::to_string(major) + ".x";
}

// How a kernel is launched: threads and dynamic shared memory of a block, blocks of a cluster.
struct ClusterLaunch {
    int threads;
    std::size_t shared;
    int cluster;
    bool persistent;  // no more blocks than run at a time

    // `blocks`: as many as there is work for.
    template <class... Parameters>
    void start(void (*kernel)(Parameters...), unsigned blocks, cudaStream_t stream,
               const std::type_identity_t<Parameters>&... arguments) const {
        allow_shared_bytes(kernel, shared);
        const auto of_cluster = static_cast<unsigned>(cluster);
        if (persistent) {
            const unsigned clusters = resident_blocks(kernel, threads, shared) / of_cluster;
            blocks = std::min(blocks, std::max(clusters, 1u) * of_cluster);
        }
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {of_cluster, 1, 1};
        cudaLaunchConfig_t config{};
        config.gridDim = blocks;
        config.blockDim = static_cast<unsigned>(threads);
        config.dynamicSmemBytes = shared;
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
    }
};

}  // namespace course
