// Analyses one request of a warp: which lanes access which bank of shared memory, or which sector
// of global memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/bench/inspection.hpp"

namespace course::tool {

constexpr unsigned kLanes = 32;
constexpr unsigned kBanks = 32;
constexpr unsigned kWordBytes = 4;
constexpr unsigned kSectorBytes = 32;

struct ActiveLane {
    unsigned lane = 0;
    std::int64_t offset = 0;  // of its first byte, from the first byte of the array
};

std::vector<ActiveLane> active_lanes(const WorstRequest& request);

// A word or sector, and the lanes that access it, in ascending order.
struct Wanted {
    std::int64_t index = 0;  // of the word or sector, from the array's first byte
    std::vector<unsigned> lanes;
};

// Shared memory serves 32 lanes at once if each accesses up to 4 bytes, 16 lanes (half-warps) for
// 8 bytes, and 8 lanes (quarter-warps) for 16 bytes. If throughout the warp lanes whose numbers
// differ by 1, or by 2, load the same address in pairs, two such groups are served together. A
// group needs as many wavefronts as the fullest bank has entries. Entries are different words, or
// lanes for atomic updates and asynchronous copies, which do not share a word. Measured on an H200.
struct BankGroup {
    unsigned first_lane = 0;
    std::array<std::vector<Wanted>, kBanks> banks;  // words in the order of the lanes

    std::size_t fullest_bank() const;
    std::size_t most_words() const { return banks[fullest_bank()].size(); }
};

// Groups without an active lane are left out. Banks are counted from the array's first byte.
std::vector<BankGroup> bank_groups(const AccessLine& line);

// The sectors of a request in the order of their addresses, with the accessed bytes of each.
struct Sector {
    std::int64_t index = 0;
    std::array<std::vector<unsigned>, kSectorBytes> bytes;  // the lanes that access each byte
};
std::vector<Sector> sectors(const AccessLine& line);

}  // namespace course::tool
