#include "device.hpp"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "block.hpp"
#include "child_grids.hpp"
#include "cuda_on_cpu/kernel_api.h"
#include "environment.hpp"
#include "errors.hpp"
#include "few_blocks.hpp"
#include "memory.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

std::size_t last_level_cache_bytes() {
    for (const char* index : {"3", "2"}) {
        std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/index") + index + "/size");
        std::size_t kilobytes = 0;
        if (file >> kilobytes) return kilobytes * 1024;
    }
    return std::size_t{8} << 20;
}

constexpr int kVersion = CUDART_VERSION;
constexpr std::size_t kStackLimit = 64 * 1024;  // what a fibre has (fibre.hpp)

cudaError_t check_device(int device, const char* function) {
    if (device == 0) return cudaSuccess;
    return refuse(cudaErrorInvalidDevice, function, "device %d; there is one device, 0", device);
}

}  // namespace

unsigned multiprocessors() {
    const unsigned pretended = pretended_multiprocessors();
    return pretended > 0 ? pretended : environment().threads;
}

std::size_t allowed_dynamic_shared(const Kernel& kernel) {
    if (kernel.max_dynamic_shared >= 0) return static_cast<std::size_t>(kernel.max_dynamic_shared);
    const std::size_t shared = device_limits().shared_per_block;
    return shared - std::min<std::size_t>(shared, kernel.static_shared);
}

unsigned blocks_per_multiprocessor(unsigned threads, std::size_t shared) {
    const DeviceLimits& limits = device_limits();
    if (threads == 0 || threads > limits.threads_per_block) return 0;
    const unsigned whole_warps = (threads + 31) / 32 * 32;
    const std::size_t by_shared =
        limits.shared_per_multiprocessor / ((shared + limits.shared_reserved_per_block + 127) / 128 * 128);
    return static_cast<unsigned>(std::min<std::size_t>(
        {limits.threads_per_multiprocessor / whole_warps, limits.blocks_per_multiprocessor, by_shared}));
}

cudaError_t get_attributes(cudaFuncAttributes* attributes, const Kernel* kernel) {
    if (kernel == nullptr)
        return refuse(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes", "not a kernel");
    *attributes = {};
    attributes->sharedSizeBytes = kernel->static_shared;
    attributes->maxThreadsPerBlock = static_cast<int>(kernel->max_threads_per_block);
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(allowed_dynamic_shared(*kernel));
    attributes->preferredShmemCarveout = kernel->preferred_carveout;
    return cudaSuccess;
}

cudaError_t set_attribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
    static constexpr const char* kFunction = "cudaFuncSetAttribute";
    if (kernel == nullptr) return refuse(cudaErrorInvalidDeviceFunction, kFunction, "not a kernel");
    switch (attribute) {
        case cudaFuncAttributeMaxDynamicSharedMemorySize: {
            const auto maximum =
                static_cast<int>(device_limits().shared_per_block_optin - kernel->static_shared);
            if (value < 0 || value > maximum) {
                return refuse(cudaErrorInvalidValue, kFunction,
                              "%d bytes of dynamic shared memory; at most %d", value, maximum);
            }
            kernel->max_dynamic_shared = value;
            return cudaSuccess;
        }
        case cudaFuncAttributePreferredSharedMemoryCarveout:
            if (value < -1 || value > 100) {
                return refuse(cudaErrorInvalidValue, kFunction, "carveout %d; expected -1 or a percentage",
                              value);
            }
            kernel->preferred_carveout = value;
            return cudaSuccess;
        case cudaFuncAttributeNonPortableClusterSizeAllowed:
            kernel->non_portable_cluster = value != 0;
            return cudaSuccess;
    }
    return refuse(cudaErrorInvalidValue, kFunction, "attribute %d", static_cast<int>(attribute));
}

cudaError_t max_active_blocks(int* blocks, const Kernel* kernel, int block_size, std::size_t dynamic_shared) {
    static constexpr const char* kFunction = "cudaOccupancyMaxActiveBlocksPerMultiprocessor";
    if (kernel == nullptr) return refuse(cudaErrorInvalidDeviceFunction, kFunction, "not a kernel");
    if (block_size <= 0) return refuse(cudaErrorInvalidValue, kFunction, "block size %d", block_size);
    const auto threads = static_cast<unsigned>(block_size);
    const bool fits = dynamic_shared <= allowed_dynamic_shared(*kernel);
    *blocks =
        fits ? static_cast<int>(blocks_per_multiprocessor(threads, dynamic_shared + kernel->static_shared))
             : 0;
    return cudaSuccess;
}

// The block size with the most resident threads; of equals the largest, as the toolkit's own function chooses.
cudaError_t max_potential_block_size(int* min_grid, int* block_size, const Kernel* kernel,
                                     std::size_t dynamic_shared, int limit) {
    if (kernel == nullptr) {
        return refuse(cudaErrorInvalidDeviceFunction, "cudaOccupancyMaxPotentialBlockSize", "not a kernel");
    }
    unsigned most = 0;
    unsigned best = 0;
    unsigned top = kernel->max_threads_per_block;
    if (limit > 0) top = std::min(top, static_cast<unsigned>(limit));
    for (unsigned threads = top; threads > 0; threads = threads > 32 ? (threads - 1) / 32 * 32 : 0) {
        const unsigned resident =
            threads * blocks_per_multiprocessor(threads, dynamic_shared + kernel->static_shared);
        if (resident > most) {
            most = resident;
            best = threads;
        }
    }
    *block_size = static_cast<int>(best);
    *min_grid = best == 0 ? 0 : static_cast<int>(most / best * multiprocessors());
    return cudaSuccess;
}

cudaError_t max_active_clusters(int* clusters, const Kernel* kernel, const cudaLaunchConfig_t* config) {
    static constexpr const char* kFunction = "cudaOccupancyMaxActiveClusters";
    if (kernel == nullptr) return refuse(cudaErrorInvalidDeviceFunction, kFunction, "not a kernel");
    LaunchConfiguration configuration;
    if (const cudaError_t error = configuration_of(config, &configuration); error != cudaSuccess)
        return error;
    const dim3 cluster = configuration.cluster;
    const unsigned size = std::max(1U, cluster.x * cluster.y * cluster.z);
    const dim3 block = config->blockDim;
    const unsigned blocks = blocks_per_multiprocessor(block.x * block.y * block.z,
                                                      config->dynamicSmemBytes + kernel->static_shared);
    *clusters = static_cast<int>(blocks * multiprocessors() / size);
    return cudaSuccess;
}

cudaError_t launch_untyped(const void* kernel, void** arguments, const LaunchConfiguration& configuration) {
    const Kernel* const found = kernel_at(kernel);
    if (found == nullptr || found->prepare_untyped == nullptr) {
        return refuse(cudaErrorInvalidDeviceFunction, "cudaLaunchKernel",
                      "%p is not a kernel with a name for each of its parameters", kernel);
    }
    found->prepare_untyped(kernel, arguments);
    return launch_prepared(configuration);
}

cudaError_t configuration_of(const cudaLaunchConfig_t* config, LaunchConfiguration* result) {
    static constexpr const char* kFunction = "cudaLaunchKernelEx";
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
        return refuse(cudaErrorInvalidValue, kFunction, "the configuration or its attributes are null");
    }
    *result = {.grid = config->gridDim,
               .block = config->blockDim,
               .dynamic_shared = config->dynamicSmemBytes,
               .stream = config->stream};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute& attribute = config->attrs[i];
        switch (attribute.id) {
            case cudaLaunchAttributeIgnore:
            case cudaLaunchAttributeAccessPolicyWindow:
            case cudaLaunchAttributeSynchronizationPolicy:
            case cudaLaunchAttributeClusterSchedulingPolicyPreference:
            case cudaLaunchAttributePriority:
            case cudaLaunchAttributeProgrammaticStreamSerialization:
            case cudaLaunchAttributeMemSyncDomainMap:
            case cudaLaunchAttributeMemSyncDomain:
            case cudaLaunchAttributePreferredSharedMemoryCarveout:
                break;  // hints: the order of issue satisfies them
            case cudaLaunchAttributeCooperative:
                result->cooperative = attribute.val.cooperative != 0;
                break;
            case cudaLaunchAttributeClusterDimension: {
                const auto& dims = attribute.val.clusterDim;
                if (dims.x == 0 || dims.y == 0 || dims.z == 0) {
                    return refuse(cudaErrorInvalidClusterSize, kFunction, "cluster (%u, %u, %u)", dims.x,
                                  dims.y, dims.z);
                }
                result->cluster = dim3(dims.x, dims.y, dims.z);
                break;
            }
            default:
                return refuse(cudaErrorNotSupported, kFunction, "launch attribute %d",
                              static_cast<int>(attribute.id));
        }
    }
    return cudaSuccess;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaGetDeviceCount(int* count) {
    if (count == nullptr) return refuse(cudaErrorInvalidValue, __func__, "count is null");
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    if (device == nullptr) return refuse(cudaErrorInvalidValue, __func__, "device is null");
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return check_device(device, __func__);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (properties == nullptr) return refuse(cudaErrorInvalidValue, __func__, "properties is null");
    if (const cudaError_t error = check_device(device, __func__); error != cudaSuccess) return error;
    const DeviceLimits& limits = device_limits();
    cudaDeviceProp& p = *properties;
    p = {};
    std::snprintf(p.name, sizeof p.name, "CPU stand-in (%u OS threads)", multiprocessors());
    p.totalGlobalMem = total_bytes();
    p.sharedMemPerBlock = limits.shared_per_block;
    p.regsPerBlock = 65536;
    p.warpSize = 32;
    p.memPitch = 2147483647;
    p.maxThreadsPerBlock = static_cast<int>(limits.threads_per_block);
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = static_cast<int>(limits.threads_per_block);
    p.maxThreadsDim[2] = static_cast<int>(limits.block_z);
    p.maxGridSize[0] = static_cast<int>(limits.grid_x);
    p.maxGridSize[1] = p.maxGridSize[2] = static_cast<int>(limits.grid_yz);
    p.totalConstMem = 65536;
    p.major = 9;
    p.minor = 0;
    p.textureAlignment = 512;
    p.multiProcessorCount = static_cast<int>(multiprocessors());
    p.integrated = 1;
    p.canMapHostMemory = 1;
    p.unifiedAddressing = 1;
    p.l2CacheSize = static_cast<int>(last_level_cache_bytes());
    p.maxThreadsPerMultiProcessor = static_cast<int>(limits.threads_per_multiprocessor);
    p.globalL1CacheSupported = p.localL1CacheSupported = 1;
    p.sharedMemPerMultiprocessor = limits.shared_per_multiprocessor;
    p.regsPerMultiprocessor = 65536;
    p.managedMemory = p.concurrentManagedAccess = 1;
    p.cooperativeLaunch = 1;
    p.sharedMemPerBlockOptin = limits.shared_per_block_optin;
    p.maxBlocksPerMultiProcessor = static_cast<int>(limits.blocks_per_multiprocessor);
    p.reservedSharedMemPerBlock = limits.shared_reserved_per_block;
    p.memoryPoolsSupported = 1;
    p.clusterLaunch = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "value is null");
    cudaDeviceProp p;
    if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            *value = p.maxThreadsPerBlock;
            break;
        case cudaDevAttrMaxBlockDimX:
            *value = p.maxThreadsDim[0];
            break;
        case cudaDevAttrMaxBlockDimY:
            *value = p.maxThreadsDim[1];
            break;
        case cudaDevAttrMaxBlockDimZ:
            *value = p.maxThreadsDim[2];
            break;
        case cudaDevAttrMaxGridDimX:
            *value = p.maxGridSize[0];
            break;
        case cudaDevAttrMaxGridDimY:
            *value = p.maxGridSize[1];
            break;
        case cudaDevAttrMaxGridDimZ:
            *value = p.maxGridSize[2];
            break;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *value = static_cast<int>(p.sharedMemPerBlock);
            break;
        case cudaDevAttrTotalConstantMemory:
            *value = static_cast<int>(p.totalConstMem);
            break;
        case cudaDevAttrWarpSize:
            *value = p.warpSize;
            break;
        case cudaDevAttrMaxRegistersPerBlock:
            *value = p.regsPerBlock;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = p.multiProcessorCount;
            break;
        case cudaDevAttrIntegrated:
            *value = p.integrated;
            break;
        case cudaDevAttrCanMapHostMemory:
            *value = p.canMapHostMemory;
            break;
        case cudaDevAttrConcurrentKernels:
            *value = p.concurrentKernels;
            break;
        case cudaDevAttrEccEnabled:
            *value = p.ECCEnabled;
            break;
        case cudaDevAttrClockRate:
        case cudaDevAttrMemoryClockRate:
            *value = 0;
            break;
        case cudaDevAttrGlobalMemoryBusWidth:
            *value = p.memoryBusWidth;
            break;
        case cudaDevAttrL2CacheSize:
            *value = p.l2CacheSize;
            break;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            *value = p.maxThreadsPerMultiProcessor;
            break;
        case cudaDevAttrAsyncEngineCount:
            *value = p.asyncEngineCount;
            break;
        case cudaDevAttrUnifiedAddressing:
            *value = p.unifiedAddressing;
            break;
        case cudaDevAttrComputeCapabilityMajor:
            *value = p.major;
            break;
        case cudaDevAttrComputeCapabilityMinor:
            *value = p.minor;
            break;
        case cudaDevAttrStreamPrioritiesSupported:
            *value = p.streamPrioritiesSupported;
            break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *value = static_cast<int>(p.sharedMemPerMultiprocessor);
            break;
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            *value = p.regsPerMultiprocessor;
            break;
        case cudaDevAttrManagedMemory:
            *value = p.managedMemory;
            break;
        case cudaDevAttrConcurrentManagedAccess:
            *value = p.concurrentManagedAccess;
            break;
        case cudaDevAttrCooperativeLaunch:
            *value = p.cooperativeLaunch;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = static_cast<int>(p.sharedMemPerBlockOptin);
            break;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            *value = p.maxBlocksPerMultiProcessor;
            break;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            *value = static_cast<int>(p.reservedSharedMemPerBlock);
            break;
        case cudaDevAttrMemoryPoolsSupported:
            *value = p.memoryPoolsSupported;
            break;
        case cudaDevAttrClusterLaunch:
            *value = p.clusterLaunch;
            break;
        default:
            return refuse(cudaErrorInvalidValue, __func__, "attribute %d", static_cast<int>(attribute));
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    if (kernel_runs()) return synchronize_by_kernel();
    if (const cudaError_t error = check_no_capture(__func__, Forbidden::by_every_capture);
        error != cudaSuccess)
        return error;
    if (in_host_function())
        return refuse(cudaErrorNotPermitted, __func__, "a host function of a stream may not call CUDA");
    wait_for_all_streams();
    return note(lost_context());
}

cudaError_t cudaDeviceReset() {
    wait_for_all_streams();
    restore_context();
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) {
    return cudaSuccess;
}

namespace {

// A device's limits. Here nothing but the stack depends on them.
std::atomic<std::size_t> limit_values[] = {
    kStackLimit, std::size_t{1} << 20, std::size_t{8} << 20, 2, 2048, 64, 0};

}  // namespace

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
    if (limit < 0 || static_cast<std::size_t>(limit) >= std::size(limit_values))
        return refuse(cudaErrorUnsupportedLimit, __func__, "limit is %d", static_cast<int>(limit));
    if (limit == cudaLimitStackSize && value > kStackLimit) {
        return refuse(cudaErrorInvalidValue, __func__, "a stack of %zu bytes; threads have %zu", value,
                      kStackLimit);
    }
    if (limit != cudaLimitStackSize) limit_values[limit] = value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the value to set is null");
    if (limit < 0 || static_cast<std::size_t>(limit) >= std::size(limit_values))
        return refuse(cudaErrorUnsupportedLimit, __func__, "limit is %d", static_cast<int>(limit));
    *value = limit_values[limit];
    return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
    *can_access = 0;
    const cudaError_t error = check_device(device, __func__);
    return error != cudaSuccess ? error : check_device(peer, __func__);
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = kVersion;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = kVersion;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned cuda_version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
    if (symbol == nullptr || function == nullptr || flags != cudaEnableDefault)
        return refuse(cudaErrorInvalidValue, __func__,
                      "symbol or function is null, or flags are not the default");
    constexpr unsigned kFirstWithTensorMaps = 12000;
    auto found = cudaDriverEntryPointSymbolNotFound;
    if (std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0)
        found = cuda_version < kFirstWithTensorMaps ? cudaDriverEntryPointVersionNotSufficent
                                                    : cudaDriverEntryPointSuccess;
    *function =
        found == cudaDriverEntryPointSuccess ? reinterpret_cast<void*>(cuTensorMapEncodeTiled) : nullptr;
    if (status != nullptr) *status = found;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    *total = total_bytes();
    *free = total_bytes() - std::min(total_bytes(), allocated_bytes());
    return cudaSuccess;
}

cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}
