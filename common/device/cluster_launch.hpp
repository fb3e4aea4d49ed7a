// Launches of kernels for Hopper: clusters, persistent grids, and the reason why a kernel cannot
// run on this device.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
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

// The launch configuration: threads and dynamic shared memory of a block, blocks of a cluster.
struct ClusterLaunch {
    int threads;
    std::size_t shared;
    int cluster;
    bool persistent;  // no more blocks than can be resident at a time
    // The kernel may start while the kernel before it ends; it calls
    // cudaGridDependencySynchronize().
    bool early = false;

    // `blocks`: the number of blocks that have work.
    template <class... Parameters>
    void start(void (*kernel)(Parameters...), unsigned blocks, cudaStream_t stream,
               const std::type_identity_t<Parameters>&... arguments) const {
        allow_shared_bytes(kernel, shared);
        const auto of_cluster = static_cast<unsigned>(cluster);
        if (persistent) {
            const unsigned clusters = resident_blocks(kernel, threads, shared) / of_cluster;
            blocks = std::min(blocks, std::max(clusters, 1u) * of_cluster);
        }
        std::array<cudaLaunchAttribute, 2> attributes{};
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim = {of_cluster, 1, 1};
        attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[1].val.programmaticStreamSerializationAllowed = early ? 1 : 0;
        cudaLaunchConfig_t config{};
        config.gridDim = blocks;
        config.blockDim = static_cast<unsigned>(threads);
        config.dynamicSmemBytes = shared;
        config.stream = stream;
        config.attrs = attributes.data();
        config.numAttrs = attributes.size();
        CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
    }
};

}  // namespace course
