#include "common/bench/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace course {
namespace {

constexpr int kWarp = 32;

template <class Integer>
Integer round_up(Integer count, Integer portion) {
    return ceil_div(count, portion) * portion;
}

int blocks_by_registers(const BlockNeeds& needs, int warps, const MultiprocessorLimits& limits) {
    if (needs.registers == 0) return kUnlimited;
    const int of_warp = round_up(needs.registers * kWarp, limits.register_portion);
    const int warps_of_partition = limits.registers / limits.partitions / of_warp;
    return warps_of_partition * limits.partitions / warps;
}

int blocks_by_shared_memory(std::size_t bytes, const MultiprocessorLimits& limits) {
    if (bytes > limits.shared_bytes_of_block) return 0;
    const std::size_t of_block = round_up(bytes + limits.reserved_shared_bytes, limits.shared_portion);
    return of_block == 0 ? kUnlimited : static_cast<int>(limits.shared_bytes / of_block);
}

// `kilobytes` of shared memory, of which `reserved` are lost in each block.
constexpr MultiprocessorLimits limits_with(int warps, int blocks, std::size_t kilobytes, std::size_t reserved,
                                           std::size_t portion) {
    return {.warps = warps,
            .blocks = blocks,
            .registers = 65536,
            .shared_bytes = kilobytes << 10,
            .shared_bytes_of_block = (kilobytes - reserved) << 10,
            .reserved_shared_bytes = reserved << 10,
            .shared_portion = portion};
}

// Sources: CUDA Programming Guide, appendix "Compute Capabilities"; CCCL's
// cuda/__device/arch_traits.h for 7.0, 10.3 and 12.1; the toolkit's cuda_occupancy.h for the
// portions.
constexpr CapabilityLimits kKnownCapabilities[] = {
    {"7.0", limits_with(64, 32, 96, 0, 256)},   {"7.5", limits_with(32, 16, 64, 0, 256)},
    {"8.0", limits_with(64, 32, 164, 1, 128)},  {"8.6", limits_with(48, 16, 100, 1, 128)},
    {"8.7", limits_with(48, 16, 164, 1, 128)},  {"8.9", limits_with(48, 24, 100, 1, 128)},
    {"9.0", limits_with(64, 32, 228, 1, 128)},  {"10.0", limits_with(64, 32, 228, 1, 128)},
    {"10.3", limits_with(64, 32, 228, 1, 128)}, {"11.0", limits_with(48, 24, 228, 1, 128)},
    {"12.0", limits_with(48, 24, 100, 1, 128)}, {"12.1", limits_with(48, 24, 100, 1, 128)},
};

}  // namespace

std::span<const CapabilityLimits> known_capabilities() {
    return kKnownCapabilities;
}

std::array<ResourceBound, 4> bounds_of(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    if (needs.threads < 1 || needs.registers < 0) {
        throw std::invalid_argument(
            fmt::format("occupancy: expected threads >= 1 and registers >= 0, got {} and {}", needs.threads,
                        needs.registers));
    }
    const int warps = ceil_div(needs.threads, kWarp);
    return {{{"registers", blocks_by_registers(needs, warps, limits)},
             {"shared memory", blocks_by_shared_memory(needs.shared_bytes, limits)},
             {"threads", needs.threads > kMostThreadsOfABlock ? 0 : limits.warps / warps},
             {"blocks", limits.blocks}}};
}

MultiprocessorLimits limits_of(const cudaDeviceProp& properties) {
    return {.warps = properties.maxThreadsPerMultiProcessor / kWarp,
            .blocks = properties.maxBlocksPerMultiProcessor,
            .registers = properties.regsPerMultiprocessor,
            .shared_bytes = properties.sharedMemPerMultiprocessor,
            .shared_bytes_of_block = properties.sharedMemPerBlockOptin,
            .reserved_shared_bytes = properties.reservedSharedMemPerBlock,
            .shared_portion = properties.major < 8 ? 256u : 128u};
}

MultiprocessorLimits multiprocessor_limits() {
    int device = 0;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    return limits_of(properties);
}

int blocks_at_once(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    return std::ranges::min(bounds_of(needs, limits), {}, &ResourceBound::blocks).blocks;
}

Occupancy occupancy(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    Occupancy result;
    result.blocks = blocks_at_once(needs, limits);
    result.share = static_cast<double>(result.blocks * ceil_div(needs.threads, kWarp)) / limits.warps;
    for (const auto& [name, blocks] : bounds_of(needs, limits)) {
        if (blocks == result.blocks) result.limit += (result.limit.empty() ? "" : ", ") + std::string(name);
    }
    return result;
}

}  // namespace course
