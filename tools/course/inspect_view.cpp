#include "inspect_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <system_error>

#include "inspect_request.hpp"

namespace course::tool {
namespace {

double ratio(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// For a sampled grid, the bytes scaled to all blocks. A few blocks do not show how many of these
// bytes are the same.
std::string traffic(std::uint64_t moved, std::uint64_t unique, double blocks_each) {
    if (moved == 0) return "none";
    if (blocks_each > 1) return "about " + bytes_text(static_cast<double>(moved) * blocks_each);
    const double times = ratio(moved, unique);
    const std::string how_often = times < 1.005 ? "" : fmt::format(" ({:.3g} times)", times);
    return fmt::format("{}, unique {}{}", bytes_text(static_cast<double>(moved)),
                       bytes_text(static_cast<double>(unique)), how_often);
}

std::string occupancy_text(const KernelInspection& kernel, const MultiprocessorLimits& limits) {
    const Occupancy occupied = occupancy({.threads = static_cast<int>(kernel.threads_per_block),
                                          .shared_bytes = kernel.static_shared + kernel.dynamic_shared},
                                         limits);
    return fmt::format("{:.0f} %, {} block{} on a multiprocessor; limited by {}, registers not counted",
                       100 * occupied.share, occupied.blocks, occupied.blocks == 1 ? "" : "s",
                       occupied.limit);
}

// The registers that a thread can have at most if they are fewer than the 255 that an instruction
// can name by so much that a compiler may have to spill: blocks of more than 512 threads.
std::string registers_text(const KernelInspection& kernel, const MultiprocessorLimits& limits) {
    constexpr unsigned kPortion = 8;
    const unsigned most = static_cast<unsigned>(limits.registers) / kernel.threads_per_block;
    if (most >= 128) return "";
    return fmt::format("at most {} for a thread of such a block; values beyond them spill",
                       most / kPortion * kPortion);
}

// Slightly more blocks in a launch than an H100 or H200 has multiprocessors: most of them wait for
// the last blocks. (The stand-in has as many as the machine has cores.)
std::string tail_text(const KernelInspection& kernel) {
    constexpr std::uint64_t kMultiprocessors = 132;
    constexpr double kBusyEnough = 0.75;
    const std::uint64_t blocks = kernel.blocks / std::max(kernel.launches, 1u);
    if (blocks <= kMultiprocessors) return "";
    const std::uint64_t most = (blocks + kMultiprocessors - 1) / kMultiprocessors;
    const double busy = ratio(blocks, most * kMultiprocessors);
    if (busy >= kBusyEnough) return "";
    return fmt::format("{} blocks on the {} multiprocessors of an H200: some get {}, and the others may idle",
                       blocks, kMultiprocessors, most);
}

// A line that loads and stores the same array in a loop, in a kernel that stores the same bytes
// again and again: a sum that is kept in memory.
std::string waiting_loads_text(const KernelInspection& kernel) {
    constexpr double kAgain = 2;
    const auto warps = kernel.inspected_blocks * ((kernel.threads_per_block + kLanes - 1) / kLanes);
    if (ratio(kernel.global_written_bytes, kernel.unique_written_bytes) < kAgain) return "";
    for (const AccessLine& store : kernel.lines) {
        if (store.space != Space::kGlobal || store.operation != Operation::kStore ||
            ratio(store.requests, warps) < kAgain)
            continue;
        const bool loads_it = std::ranges::any_of(kernel.lines, [&](const AccessLine& load) {
            return load.space == Space::kGlobal && load.operation == Operation::kLoad &&
                   load.source == store.source && load.bytes == store.bytes &&
                   array_of(load) == array_of(store) && load.requests >= store.requests;
        });
        if (!loads_it) continue;
        return fmt::format("{}, {:.0f} times in a thread, at {}; one element belongs in a register",
                           array_of(store), ratio(store.requests, warps), place(store.source));
    }
    return "";
}

// "day05::multiply" -> "multiply"; template arguments are not changed.
std::string_view without_namespaces(std::string_view name) {
    const auto separator = name.substr(0, name.find('<')).rfind("::");
    return separator == std::string_view::npos ? name : name.substr(separator + 2);
}

// The values in "int TILE = 32; bool VECTOR = true".
std::vector<std::string> template_arguments(std::string_view bindings) {
    std::vector<std::string> values;
    while (!bindings.empty()) {
        const std::string_view binding = bindings.substr(0, bindings.find("; "));
        bindings.remove_prefix(std::min(bindings.size(), binding.size() + 2));
        const auto equals = binding.find(" = ");
        values.emplace_back(equals == std::string_view::npos ? binding : binding.substr(equals + 3));
    }
    return values;
}

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The bytes that an access or a whole line moves beyond its ideal, and in total. The comparison
// orders by cost.
struct Cost {
    std::int64_t beyond_ideal = 0;
    std::uint64_t all = 0;

    auto operator<=>(const Cost&) const = default;
};

// The bytes of a transaction: a wavefront or a sector.
unsigned bytes_of(Space space) {
    return space == Space::kShared ? kBanks * kWordBytes : kSectorBytes;
}

Cost cost_of(const AccessLine* access) {
    const std::int64_t bytes = bytes_of(access->space);
    const auto all = static_cast<std::int64_t>(access->transactions);
    return {bytes * std::max<std::int64_t>(0, all - static_cast<std::int64_t>(access->ideal)),
            access->transactions * static_cast<std::uint64_t>(bytes)};
}

Cost cost_of_line(const InspectedLine& line) {
    Cost sum;
    for (const AccessLine* access : line.accesses) {
        const Cost cost = cost_of(access);
        sum.beyond_ideal += cost.beyond_ideal;
        sum.all += cost.all;
    }
    return sum;
}

}  // namespace

double blocks_each(const KernelInspection& kernel) {
    return kernel.inspected_blocks == 0 ? 1 : ratio(kernel.blocks, kernel.inspected_blocks);
}

std::string requests_text(const AccessLine& access, double blocks_each) {
    return fmt::format("{}{:.0f}", blocks_each > 1 ? "~" : "",
                       blocks_each * static_cast<double>(access.requests));
}

std::vector<InspectedLine> costliest_first(const KernelInspection& kernel) {
    std::vector<InspectedLine> lines;
    for (const AccessLine& access : kernel.lines) {
        auto line = std::ranges::find(lines, access.source, &InspectedLine::source);
        if (line == lines.end()) line = lines.insert(lines.end(), {access.source, {}, blocks_each(kernel)});
        line->accesses.push_back(&access);
    }
    for (InspectedLine& line : lines)
        std::ranges::stable_sort(line.accesses, std::ranges::greater(), cost_of);
    std::ranges::stable_sort(lines, std::ranges::greater(), cost_of_line);
    return lines;
}

Grade grade(const AccessLine& line) {
    const double times = ratio(line.transactions, line.ideal);
    return times < 1.05 ? Grade::kIdeal : times < 2 ? Grade::kFair : Grade::kPoor;
}

double transactions_per_request(const AccessLine& line) {
    return ratio(line.transactions, line.requests);
}

double ideal_per_request(const AccessLine& line) {
    return ratio(line.ideal, line.requests);
}

double lanes_per_request(const AccessLine& line) {
    return ratio(line.active_lanes, line.requests);
}

double share_of_bytes_used(const AccessLine& line) {
    return ratio(line.bytes_used, line.transactions * kSectorBytes);
}

std::string array_of(const AccessLine& line) {
    constexpr std::string_view kAllocation = "allocation of ";
    const std::string& array = line.worst.array;
    const auto allocation = array.find(kAllocation);
    if (allocation == std::string::npos) return array;
    double bytes = 0;
    const char* const digits = array.data() + allocation + kAllocation.size();
    const auto [end, error] = std::from_chars(digits, array.data() + array.size(), bytes);
    return error == std::errc() ? array.substr(0, allocation) + bytes_text(bytes) : array;
}

std::string what(const AccessLine& line) {
    std::string operation(name(line.operation));
    std::ranges::replace(operation, '_', ' ');
    return fmt::format("{} {} of {} byte{}", name(line.space), operation, line.bytes,
                       line.bytes == 1 ? "" : "s");
}

std::string_view unit(const AccessLine& line) {
    return line.space == Space::kShared ? "wavefronts" : "sectors";
}

bool is_broadcast(const AccessLine& line) {
    return line.operation == Operation::kLoad && line.active_lanes > line.requests &&
           line.bytes_used == line.requests * line.bytes;
}

std::string short_name(std::string_view kernel) {
    constexpr std::string_view kWith = " [with ";
    const auto with = kernel.find(kWith);
    if (with == std::string_view::npos || !kernel.ends_with(']'))
        return std::string(without_namespaces(kernel));
    const std::string_view bindings =
        kernel.substr(with + kWith.size(), kernel.size() - with - kWith.size() - 1);
    return fmt::format("{}<{}>", without_namespaces(kernel.substr(0, with)),
                       fmt::join(template_arguments(bindings), ", "));
}

std::string bytes_text(double bytes) {
    constexpr std::array kUnits = {"B", "KB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit)
        bytes /= 1000;
    return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string extent(const KernelInspection& kernel) {
    std::string text = fmt::format("{} block{} of {} threads", kernel.blocks, kernel.blocks == 1 ? "" : "s",
                                   kernel.threads_per_block);
    if (kernel.launches > 1) text += fmt::format(" in {} launches", kernel.launches);
    if (kernel.inspected_blocks != kernel.blocks)
        text += fmt::format(", sampled {} of {} blocks", kernel.inspected_blocks, kernel.blocks);
    return text;
}

Facts facts_of(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits) {
    Facts facts = {
        {"read", traffic(kernel.global_read_bytes, kernel.unique_read_bytes, blocks_each(kernel))},
        {"written", traffic(kernel.global_written_bytes, kernel.unique_written_bytes, blocks_each(kernel))},
        {"barriers per block", fmt::format("{:.4g}", ratio(kernel.barriers, kernel.inspected_blocks))}};
    std::uint64_t requests = 0;
    std::uint64_t active_lanes = 0;
    for (const AccessLine& line : kernel.lines) {
        requests += line.requests;
        active_lanes += line.active_lanes;
    }
    if (requests > 0)  // fewer than 32: branches, loops of unequal length, the edges of the grid
        facts.emplace_back("active lanes", fmt::format("{:.1f} of 32 at an access, on average",
                                                       ratio(active_lanes, requests)));
    const std::size_t shared = kernel.static_shared + kernel.dynamic_shared;
    if (shared > 0)
        facts.emplace_back("shared memory", bytes_text(static_cast<double>(shared)) + " per block");
    const auto add = [&facts](const char* name, std::string text) {
        if (!text.empty()) facts.emplace_back(name, std::move(text));
    };
    if (limits && kernel.threads_per_block > 0) {
        add("occupancy", occupancy_text(kernel, *limits));
        add("registers", registers_text(kernel, *limits));
    }
    add("tail", tail_text(kernel));
    add("stored again", waiting_loads_text(kernel));
    if (kernel.dropped_accesses > 0) {
        facts.emplace_back("not counted",
                           fmt::format("{} accesses of threads that made too many without waiting",
                                       kernel.dropped_accesses));
    }
    if (!kernel.all_memory_watched) {
        facts.emplace_back("not watched",
                           "races between blocks beyond the first 128 MiB of memory that they touched");
    }
    return facts;
}

Facts facts_of(const InspectedVersion& version) {
    double moved = 0;
    double unique = 0;
    bool sampled = false;
    for (const KernelInspection& kernel : version.kernels) {
        moved +=
            blocks_each(kernel) * static_cast<double>(kernel.global_read_bytes + kernel.global_written_bytes);
        unique += static_cast<double>(kernel.unique_read_bytes + kernel.unique_written_bytes);
        sampled = sampled || kernel.inspected_blocks != kernel.blocks;
    }
    Facts facts;
    if (version.awaited_copies > 0) {
        facts.emplace_back("copies to the host",
                           fmt::format("{}, of {} in all, and the host waits for {}", version.awaited_copies,
                                       bytes_text(static_cast<double>(version.awaited_copy_bytes)),
                                       version.awaited_copies == 1 ? "it" : "each"));
    }
    if (version.flops == 0 || moved == 0) return facts;
    std::string text = fmt::format("{:.3g} operations for each byte moved", version.flops / moved);
    if (!sampled && unique > 0)  // blocks share bytes, so a few blocks do not represent all of them
        text += fmt::format(", {:.3g} if a cache kept all", version.flops / unique);
    facts.emplace_back("arithmetic intensity", text);
    return facts;
}

BytesMoved bytes_moved(const InspectedVersion& version, Space space) {
    BytesMoved moved;
    for (const KernelInspection& kernel : version.kernels) {
        const double bytes = bytes_of(space) * blocks_each(kernel);
        for (const AccessLine& line : kernel.lines) {
            if (line.space != space) continue;
            const std::uint64_t ideal = std::min(line.ideal, line.transactions);
            moved.ideal += bytes * static_cast<double>(ideal);
            moved.beyond_ideal += bytes * static_cast<double>(line.transactions - ideal);
        }
    }
    return moved;
}

std::uint64_t bytes_moved(const InspectedLine& line) {
    return cost_of_line(line).all;
}

bool is_sampled(const InspectedVersion& version) {
    return std::ranges::any_of(version.kernels, [](const KernelInspection& kernel) {
        return kernel.inspected_blocks != kernel.blocks;
    });
}

std::string place(const SourceLine& source) {
    if (source.line == 0) return source.file.empty() ? "an unknown place" : source.file;
    return fmt::format("{}:{}", std::filesystem::path(source.file).filename().string(), source.line);
}

std::string thread_name(const std::array<unsigned, 3>& thread, const std::array<unsigned, 3>& block) {
    return fmt::format("thread ({}) of block ({})", fmt::join(thread, ", "), fmt::join(block, ", "));
}

std::size_t count_findings(const InspectionFile& file) {
    std::size_t count = 0;
    for (const InspectedVersion& version : file.results) {
        for (const KernelInspection& kernel : version.kernels)
            count += kernel.findings.size();
    }
    return count;
}

const std::vector<std::string>& Sources::lines(const std::string& file) {
    const auto [known, is_new] = files_.try_emplace(file);
    if (is_new) {
        std::ifstream stream(root_ / file);
        for (std::string line; std::getline(stream, line);)
            known->second.push_back(line);
    }
    return known->second;
}

std::string Sources::text(const SourceLine& source) {
    const std::vector<std::string>& all = lines(source.file);
    if (source.line < 1 || static_cast<std::size_t>(source.line) > all.size()) return "";
    return trimmed(all[static_cast<std::size_t>(source.line) - 1]);
}

}  // namespace course::tool
