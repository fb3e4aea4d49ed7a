// Accesses of a warp as an inspection tells of them, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>

#include "common/bench/inspection.hpp"

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
    line.bytes_used = line.active_lanes * bytes;
    line.ideal = requests * (space == Space::kShared ? (line.worst.active_lanes * bytes + 127) / 128
                                                     : (line.worst.active_lanes * bytes + 31) / 32);
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

}  // namespace course::tool
