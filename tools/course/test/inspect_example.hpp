// Example accesses of a warp, and a small example inspection, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"

namespace course::tool {

using OffsetOf = std::function<std::int64_t(std::int64_t lane)>;  // -1: the lane takes no part

// A line with `requests` requests, all alike, that take `transactions` each.
inline AccessLine access(Space space, Operation operation, unsigned bytes, unsigned transactions,
                         const OffsetOf& offset, std::uint64_t requests = 10) {
    AccessLine line{.source = {"day/kernel.cu", 3},
                    .space = space,
                    .operation = operation,
                    .bytes = bytes,
                    .requests = requests,
                    .transactions = requests * transactions,
                    .worst = {}};
    for (std::int64_t lane = 0; lane < 32; ++lane) {
        line.worst.offsets.push_back(offset(lane));
        if (line.worst.offsets.back() >= 0) ++line.worst.active_lanes;
    }
    line.worst.transactions = transactions;
    line.worst.array = "tile";
    line.active_lanes = requests * line.worst.active_lanes;
    std::set<std::int64_t> elements(line.worst.offsets.begin(), line.worst.offsets.end());
    elements.erase(-1);
    const auto distinct = static_cast<unsigned>(elements.size()) * bytes;
    line.bytes_used = requests * distinct;
    line.ideal = requests * (space == Space::kShared ? (line.worst.active_lanes * bytes + 127) / 128
                                                     : (distinct + 31) / 32);
    return line;
}

inline AccessLine shared_load(unsigned bytes, unsigned transactions, const OffsetOf& offset) {
    return access(Space::kShared, Operation::kLoad, bytes, transactions, offset);
}

inline AccessLine global_load(unsigned bytes, unsigned transactions, const OffsetOf& offset) {
    return access(Space::kGlobal, Operation::kLoad, bytes, transactions, offset);
}

// Only the first `count` lanes.
inline OffsetOf first_lanes(std::int64_t count, const OffsetOf& offset) {
    return [=](std::int64_t lane) { return lane < count ? offset(lane) : -1; };
}

inline OffsetOf stride(std::int64_t bytes, std::int64_t first = 0) {
    return [=](std::int64_t lane) { return first + lane * bytes; };
}

inline constexpr const char* kExampleSource =
    "// Idea: a column.\n"
    "template <int TILE>\n"
    "__global__ void transpose(const float* in, float* out) {\n"
    "    tile[y][x] = in[i];\n"
    "    out[i] = tile[x][y] < limit && \"&\";\n"
    "}\n";

inline const MultiprocessorLimits kExampleLimits = {.warps = 64,
                                                    .blocks = 32,
                                                    .registers = 65536,
                                                    .shared_bytes = 228 * 1024,
                                                    .shared_bytes_of_block = 227 * 1024,
                                                    .reserved_shared_bytes = 1024};

inline AccessLine at(int number, AccessLine line) {
    line.source.line = number;
    return line;
}

inline KernelInspection example_kernel() {
    return {.name = "day::transpose [with int TILE = 32; bool VECTOR = true]",
            .launches = 1,
            .blocks = 16,
            .inspected_blocks = 16,
            .threads_per_block = 1024,
            .static_shared = 4096,
            .barriers = 16,
            .global_read_bytes = 131072,
            .global_written_bytes = 65536,
            .unique_read_bytes = 65536,
            .unique_written_bytes = 65536,
            .lines = {at(4, global_load(4, 4, stride(4))), at(5, shared_load(4, 1, stride(0))),
                      at(5, shared_load(4, 32, stride(128)))},
            .findings = {}};
}

inline Finding example_race() {
    return {.kind = "race",
            .source = {"day/kernel.cu", 4},
            .message = "tile[0][1] is written while it may be read",
            .why = "No barrier between the two.",
            .block = {1, 0, 0},
            .thread = {2, 0, 0},
            .other = SourceLine{"day/kernel.cu", 5},
            .other_block = {1, 0, 0},
            .other_thread = {3, 4, 0},
            .count = 12};
}

inline InspectionFile example_inspection() {
    return {.day = "day",
            .commit = "abc",
            .results = {{.problem = "matrix 128x128",
                         .version = "plain",
                         .verified = true,
                         .flops = 393216,
                         .kernels = {example_kernel()}},
                        {.problem = "matrix 128x128", .version = "wide", .cannot_run = "too wide"}}};
}

// How often `part` is in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

}  // namespace course::tool
