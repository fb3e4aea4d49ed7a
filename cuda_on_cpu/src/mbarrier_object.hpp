// The 64 bits of an mbarrier: all of its state, in shared memory, as on a GPU. Blocks of a cluster
// may change it concurrently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cuda_on_cpu {

struct MbarrierState {
    unsigned expected;  // arrivals per phase
    unsigned pending;   // of those, arrivals that are still missing
    // Bytes that bulk copies have yet to deliver; negative: bytes that were delivered before they
    // were expected.
    int bytes;
    unsigned parity;  // of the present phase
    bool published;   // bulk copies and other blocks may use it
};

inline constexpr unsigned kMostArrivals = (1u << 20) - 1;
inline constexpr int kMostBytes = (1 << 20) - 1;

// nullopt: the mbarrier was not initialised, or was overwritten.
std::optional<MbarrierState> read_mbarrier(const std::uint64_t* barrier);
void write_mbarrier(std::uint64_t* barrier, const MbarrierState& state);

struct MbarrierChange {
    std::string error;  // empty: none
    bool phase_ended = false;
};
// Adds `bytes`, which may be negative, to the missing bytes; then counts the arrivals. Ends the
// phase when nothing is missing. Later phases expect `leaving` arrivals fewer.
MbarrierChange change_mbarrier(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving = 0);

// "phase of parity 0, 1 of 2 arrivals missing, 4096 bytes missing"
std::string describe_mbarrier(const std::uint64_t* barrier);

}  // namespace cuda_on_cpu
