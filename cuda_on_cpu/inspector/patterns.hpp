// What the requests of a warp have in common whose lanes' addresses have the same distances: in a
// loop most requests are like an earlier one at the same place, some bytes further on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trace.hpp"
#include "transactions.hpp"

namespace cuda_on_cpu::inspector {

// Lanes of a warp that access one address, or consecutive words of a line of shadow memory.
struct LaneGroup {
    std::uint8_t first = 0;
    std::uint8_t lanes = 0;
    bool one_address = false;
};

// A request by all lanes of a warp.
class Pattern {
  public:
    static constexpr std::uint64_t kLineBytes = 64;

    // `to_gpu`: what has to be added to an address to get that of a GPU.
    bool is_of(Action action, const Addresses& addresses, std::uint64_t to_gpu) const {
        const std::uint64_t on = addresses[0] - addresses_[0];
        if (action_ != action || on % kLineBytes != 0 || (to_gpu - to_gpu_) % kLineBytes != 0) return false;
        std::uint64_t differences = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane)
            differences |= (addresses[lane] - on) ^ addresses_[lane];
        return differences == 0;
    }
    void set(Action action, const Addresses& addresses, std::uint64_t to_gpu);

    // The lowest and the highest address, for the address of lane 0.
    std::uint64_t lowest(std::uint64_t address) const { return address - addresses_[0] + lowest_; }
    std::uint64_t highest(std::uint64_t address) const { return address - addresses_[0] + highest_; }
    const Count& count() const { return count_; }
    // Of global memory, for the address of lane 0 on a GPU.
    void sectors(std::uint64_t gpu_address, Sectors& sectors) const {
        const std::uint64_t on = gpu_address / kSectorBytes - (addresses_[0] + to_gpu_) / kSectorBytes;
        sectors.count = sectors_.count;
        for (unsigned i = 0; i < sectors_.count; ++i)
            sectors.sector[i] = sectors_.sector[i] + on;
    }
    // For loads of whole words.
    std::span<const LaneGroup> groups() const { return {groups_.data(), group_count_}; }

  private:
    void make_groups();

    Action action_;
    Addresses addresses_{};
    std::uint64_t to_gpu_ = 0;
    std::uint64_t lowest_ = 0;
    std::uint64_t highest_ = 0;
    Count count_;
    Sectors sectors_;
    std::array<LaneGroup, kLanes> groups_;
    unsigned group_count_ = 0;
};

// The patterns that were seen last.
class Patterns {
  public:
    const Pattern& of(Action action, const Addresses& addresses, std::uint64_t to_gpu) {
        // Next to each other: those of an instruction that goes on by a word or a few.
        const std::uint64_t slot = (action.place() * 0x9E3779B97F4A7C15U >> 32) + addresses[0] / 4 % 16;
        Pattern& pattern = lately_[slot % kSize];
        if (!pattern.is_of(action, addresses, to_gpu)) pattern.set(action, addresses, to_gpu);
        return pattern;
    }

  private:
    static constexpr std::size_t kSize = 128;
    std::array<Pattern, kSize> lately_;
};

}  // namespace cuda_on_cpu::inspector
