// The 64 bits of an mbarrier: all of its state, in shared memory, as on a GPU. Blocks of a cluster
// change it at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cuda_on_cpu {

struct MbarrierState {
    unsigned expected;  // arrivals that a phase takes
    unsigned pending;   // of those, how many have not come yet
    int bytes;  // that bulk copies have still to bring; below 0: that have come before they were expected
    unsigned parity;  // of the phase under way
    bool published;   // bulk copies and other blocks know of it
};

inline constexpr unsigned kMostArrivals = (1u << 20) - 1;
inline constexpr int kMostBytes = (1 << 20) - 1;

// Empty: nothing has initialised it, or something has overwritten it.
std::optional<MbarrierState> read_mbarrier(const std::uint64_t* barrier);
void write_mbarrier(std::uint64_t* barrier, const MbarrierState& state);

struct MbarrierChange {
    std::string error;  // empty: none
    bool phase_ended = false;
};
// So many arrivals, and so many bytes more (fewer) to wait for: first the bytes. Ends the phase
// when nothing is missing. Later phases take `leaving` arrivals fewer.
MbarrierChange change_mbarrier(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving = 0);

// "phase of parity 0, 1 of 2 arrivals missing, 4096 bytes missing"
std::string describe_mbarrier(const std::uint64_t* barrier);

}  // namespace cuda_on_cpu
