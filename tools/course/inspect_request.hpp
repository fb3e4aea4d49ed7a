// One request of a warp, taken apart: which lanes meet in which bank of shared memory, or in which
// sector of global memory.
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

// A piece of memory, and the lanes that want something of it, in ascending order.
struct Wanted {
    std::int64_t index = 0;  // of the word or sector, from the array's first byte
    std::vector<unsigned> lanes;
};

// Shared memory answers 32 lanes at once when each wants up to 4 bytes, 16 when 8 (half-warps), 8
// when 16 (quarter-warps). Loads whose neighbours, or next neighbours, want the same throughout the
// warp are answered for two such groups together. A group needs as many wavefronts as the fullest
// bank has entries: different words, or lanes for atomic updates and asynchronous copies, which do
// not share a word. Measured on an H200.
struct BankGroup {
    unsigned first_lane = 0;
    std::array<std::vector<Wanted>, kBanks> banks;  // words in the order of the lanes

    std::size_t fullest_bank() const;
    std::size_t most_words() const { return banks[fullest_bank()].size(); }
};

// Groups without an active lane are left out. Banks are counted from the array's first byte.
std::vector<BankGroup> bank_groups(const AccessLine& line);

// In the order of their addresses; of the wanted bytes, sector by sector.
struct Sector {
    std::int64_t index = 0;
    std::array<std::vector<unsigned>, kSectorBytes> bytes;  // which lanes want each byte
};
std::vector<Sector> sectors(const AccessLine& line);

}  // namespace course::tool
