#include "device.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "common/bench/machine_limits.hpp"

namespace course::tool {
namespace {

std::string version(int number) {
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string kibibytes(std::size_t bytes) {
    return fmt::format("{:.5g} KiB", static_cast<double>(bytes) / (1 << 10));
}

std::string gibibytes(std::size_t bytes) {
    return fmt::format("{:.4g} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string sides(const int (&size)[3]) {
    return fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}

std::vector<Fact> describe(const cudaDeviceProp& device) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    const bool knows_memory = cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;
    return {
        {"name", device.name},
        {"compute capability", fmt::format("{}.{}", device.major, device.minor)},
        {"multiprocessors", fmt::format("{}", device.multiProcessorCount)},
        {"memory", knows_memory ? fmt::format("{} ({} free)", gibibytes(total_bytes), gibibytes(free_bytes))
                                : gibibytes(device.totalGlobalMem)},
        {"L2 cache", kibibytes(static_cast<std::size_t>(device.l2CacheSize))},
        {"threads per warp", fmt::format("{}", device.warpSize)},
        {"threads per block",
         fmt::format("at most {} ({})", device.maxThreadsPerBlock, sides(device.maxThreadsDim))},
        {"blocks per grid", sides(device.maxGridSize)},
        {"shared memory per block", fmt::format("{} ({} on request)", kibibytes(device.sharedMemPerBlock),
                                                kibibytes(device.sharedMemPerBlockOptin))},
        {"registers per block", fmt::format("{}", device.regsPerBlock)},
        {"per multiprocessor",
         fmt::format("{} threads, {} blocks, {} registers, {} shared", device.maxThreadsPerMultiProcessor,
                     device.maxBlocksPerMultiProcessor, device.regsPerMultiprocessor,
                     kibibytes(device.sharedMemPerMultiprocessor))},
    };
}

}  // namespace

DeviceReport inspect_device() {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    cudaDeviceProp properties{};
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, 0);
    if (error != cudaSuccess) {
        return {fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)), {}};
    }

    DeviceReport report{{}, describe(properties)};
    int driver = 0;
    int runtime = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
        report.facts.emplace_back(
            "CUDA", fmt::format("runtime {}, driver supports {}", version(runtime), version(driver)));
    }
    if (count > 1) report.facts.emplace_back("devices", fmt::format("{}, of which the first is used", count));
    return report;
}

std::vector<Fact> measure_device() {
    const std::optional<MachineLimits>& limits = machine_limits();
    if (!limits) return {};
    std::vector<Fact> facts;
    for (const StreamRate& stream : limits->streams) {
        facts.emplace_back("measured " + stream.pattern,
                           fmt::format("{:.0f} GB/s", stream.bytes_per_second / 1e9));
    }
    facts.emplace_back("measured FP32", fmt::format("{:.1f} TFLOP/s", limits->flops_per_second / 1e12));
    return facts;
}

}  // namespace course::tool
