#include "common/bench/occupancy.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>
#include <vector>

#include "commands.hpp"
#include "common/device/grid.hpp"
#include "errors.hpp"

namespace course::tool {
namespace {

constexpr int kWarpOfLanes = 32;

CapabilityLimits limits_of_capability(const std::string& name) {
    const auto known = known_capabilities();
    const auto found = std::ranges::find(known, name, &CapabilityLimits::capability);
    if (found != known.end()) return *found;
    throw UsageError(
        fmt::format("--capability {}: expected one of {}", name,
                    fmt::join(known | std::views::transform(&CapabilityLimits::capability), ", ")));
}

struct Multiprocessor {
    std::string capability;
    MultiprocessorLimits limits;
};
Multiprocessor multiprocessor_of(const std::string& capability) {
    cudaDeviceProp properties{};
    if (capability.empty() && cudaGetDeviceProperties(&properties, 0) == cudaSuccess)
        return {fmt::format("{}.{}", properties.major, properties.minor), limits_of(properties)};
    const auto [name, limits] = limits_of_capability(capability.empty() ? "9.0" : capability);
    return {name, limits};
}

void expect_in_range(const char* option, long long value, long long least, long long most,
                     const std::string& of) {
    if (value >= least && value <= most) return;
    throw UsageError(fmt::format("{} {}: expected {} to {}{}", option, value, least, most, of));
}

BlockNeeds needs_of(const OccupancyOptions& options, const Multiprocessor& sm) {
    expect_in_range("--threads", options.threads, 1, kMostThreadsOfABlock, " threads of a block");
    if (options.registers) {
        expect_in_range("--registers", *options.registers, 1, kMostRegistersOfAThread,
                        " registers of a thread");
    }
    expect_in_range("--shared", options.shared, 0, static_cast<long long>(sm.limits.shared_bytes_of_block),
                    " bytes of a block, on compute capability " + sm.capability);
    return {.threads = options.threads,
            .registers = options.registers.value_or(0),
            .shared_bytes = static_cast<std::size_t>(options.shared)};
}

int warps_of(const BlockNeeds& needs) {
    return ceil_div(needs.threads, kWarpOfLanes);
}

std::string outcome(const Occupancy& occupied) {
    return fmt::format("{} block{}, {:.0f} %", occupied.blocks, occupied.blocks == 1 ? "" : "s",
                       100 * occupied.share);
}

// What the block takes of each resource, and the blocks that the resource allows.
std::string table_of_resources(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    const int warps = warps_of(needs);
    const int of_warp =
        ceil_div(needs.registers * kWarpOfLanes, limits.register_portion) * limits.register_portion;
    const std::size_t bytes =
        ceil_div(needs.shared_bytes + limits.reserved_shared_bytes, limits.shared_portion) *
        limits.shared_portion;
    const auto amounts = [&](const std::string& resource) -> std::pair<std::string, std::string> {
        if (resource == "registers") {
            return {needs.registers == 0 ? "not counted" : fmt::format("{}", of_warp * warps),
                    fmt::format("{}", limits.registers)};
        }
        if (resource == "shared memory")
            return {fmt::format("{} bytes", bytes), fmt::format("{} bytes", limits.shared_bytes)};
        if (resource == "threads")
            return {fmt::format("{} warp{}", warps, warps == 1 ? "" : "s"),
                    fmt::format("{} warps", limits.warps)};
        return {"1", fmt::format("{}", limits.blocks)};
    };
    std::string text =
        fmt::format("  {:<14} {:<14} {:<14} {:>6}\n", "resource", "a block takes", "an SM has", "blocks");
    for (const auto& [resource, blocks] : bounds_of(needs, limits)) {
        const auto [taken, all] = amounts(resource);
        text += fmt::format("  {:<14} {:<14} {:<14} {:>6}\n", resource, taken, all,
                            blocks == kUnlimited ? "any" : fmt::format("{}", blocks));
    }
    return text;
}

// A number that the user may change, and the needs with another value of it. More of it never
// allows more blocks.
struct Quantity {
    const char* name;
    int least;
    int most;
    std::function<BlockNeeds(int)> with;
};

std::vector<Quantity> quantities_of(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    const auto changing = [needs](auto member) {
        return [needs, member](int value) {
            BlockNeeds changed = needs;
            changed.*member = static_cast<std::remove_reference_t<decltype(changed.*member)>>(value);
            return changed;
        };
    };
    return {{"threads", 1, kMostThreadsOfABlock, changing(&BlockNeeds::threads)},
            {"registers", 1, kMostRegistersOfAThread, changing(&BlockNeeds::registers)},
            {"shared bytes", 0, static_cast<int>(limits.shared_bytes_of_block),
             changing(&BlockNeeds::shared_bytes)}};
}

// The largest value with at least so many blocks; least - 1 if there is none.
int largest_with(const Quantity& quantity, int blocks, const MultiprocessorLimits& limits) {
    const auto values = std::views::iota(quantity.least, quantity.most + 1);
    const auto first_too_large = std::ranges::partition_point(
        values, [&](int value) { return blocks_at_once(quantity.with(value), limits) >= blocks; });
    return quantity.least - 1 + static_cast<int>(first_too_large - values.begin());
}

// For each quantity: the next value with more blocks, the range without a change, the next value
// with fewer.
std::string steps_of(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    const int now = blocks_at_once(needs, limits);
    std::string text;
    for (const Quantity& quantity : quantities_of(needs, limits)) {
        std::string_view name = quantity.name;
        const auto add_line = [&](const std::string& line) {
            text += fmt::format("  {:<14} {}\n", name, line);
            name = "";
        };
        const auto with = [&](int value) { return outcome(occupancy(quantity.with(value), limits)); };
        const int more = largest_with(quantity, now + 1, limits);
        const int same = largest_with(quantity, now, limits);
        add_line(more < quantity.least ? "fewer alone do not help"
                                       : fmt::format("at most {}: {}", more, with(more)));
        add_line(fmt::format("at most {}: {} block{}, as now{}", same, now, now == 1 ? "" : "s",
                             same == quantity.most ? " (there are no more)" : ""));
        if (same < quantity.most) add_line(fmt::format("from {}: {}", same + 1, with(same + 1)));
    }
    return text;
}

// A line for each number of blocks, as registers of a thread grow.
std::string drawing_of(const BlockNeeds& needs, const MultiprocessorLimits& limits) {
    constexpr int kWidth = 32;  // of the bar of 100 %
    const Quantity registers = quantities_of(needs, limits)[1];
    std::string text = "  registers   blocks  occupancy\n";
    for (int first = 1; first <= registers.most;) {
        const Occupancy occupied = occupancy(registers.with(first), limits);
        const int last = largest_with(registers, occupied.blocks, limits);
        const bool is_here = first <= needs.registers && needs.registers <= last;
        std::string line =
            fmt::format("  {:>3} to {:>3}  {:>6}  {:>5.0f} %   {:#<{}}", first, last, occupied.blocks,
                        100 * occupied.share, "", static_cast<int>(std::lround(kWidth * occupied.share)));
        if (is_here) line += fmt::format(" <- {}", needs.registers);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
        first = last + 1;
    }
    return text;
}

}  // namespace

std::string occupancy_text(const OccupancyOptions& options) {
    const Multiprocessor sm = multiprocessor_of(options.capability);
    const BlockNeeds needs = needs_of(options, sm);
    const Occupancy occupied = occupancy(needs, sm.limits);
    const std::string result = occupied.blocks == 0
                                   ? "no block fits, so a launch fails"
                                   : fmt::format("{} occupancy: {} of {} warps", outcome(occupied),
                                                 occupied.blocks * warps_of(needs), sm.limits.warps);
    return fmt::format(
        "Compute capability {}, blocks of {} thread{}\n{}"
        "{}\nlimited by {}\n\n"
        "One change at a time\n{}\n"
        "Occupancy by registers of a thread\n{}",
        sm.capability, needs.threads, needs.threads == 1 ? "" : "s", table_of_resources(needs, sm.limits),
        result, occupied.limit, steps_of(needs, sm.limits), drawing_of(needs, sm.limits));
}

int show_occupancy(const OccupancyOptions& options) {
    fmt::print("{}", occupancy_text(options));
    return kSuccess;
}

}  // namespace course::tool
