// A warp of the running block: which of its lanes can run, why the others wait, and the collectives
// in progress.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kMaxWarps = kMaxThreads / kWarpLanes;

using LaneMask = std::uint32_t;  // also of warps: a block has at most 32

constexpr LaneMask bit(unsigned lane) {
    return LaneMask{1} << lane;
}

constexpr unsigned lowest(LaneMask mask) {
    return static_cast<unsigned>(std::countr_zero(mask));
}

constexpr unsigned first(LaneMask mask, bool descending) {
    return descending ? 31 - static_cast<unsigned>(std::countl_zero(mask)) : lowest(mask);
}

// for (unsigned lane : lanes_of(mask)), in ascending order. The loop body may change the mask.
class lanes_of {
  public:
    constexpr explicit lanes_of(LaneMask mask) : mask_(mask) {}
    struct Iterator {
        LaneMask left;
        constexpr unsigned operator*() const { return lowest(left); }
        constexpr void operator++() { left &= left - 1; }
        constexpr bool operator!=(Iterator other) const { return left != other.left; }
    };
    constexpr Iterator begin() const { return {mask_}; }
    constexpr Iterator end() const { return {0}; }

  private:
    LaneMask mask_;
};

// Why a suspended lane cannot run. (In a collective it waits in a Group, at a cuda::barrier in that
// barrier's list.)
enum class Wait {
    polling,         // for a value in memory: the lane runs again when no other can
    converging,      // in __activemask, until no other lane of the warp can run
    block_barrier,   // __syncthreads
    blocks_barrier,  // of a grid or a cluster
    mbarrier,
    named_barrier,
    products,  // in wgmma.wait_group, for the other warps of the warpgroup
};
inline constexpr std::size_t kWaits = static_cast<std::size_t>(Wait::products) + 1;

// One collective in progress. Lanes of disjoint masks may be in different collectives at the same
// time.
struct Group {
    LaneMask mask;
    LaneMask arrived;
    CollectiveWork work;
    const char* name;
    Ended ended;
};

struct Warp {
    LaneMask lanes = 0;      // lanes that exist: fewer than 32 in the last warp of an odd block
    LaneMask live = 0;       // of these, the lanes that have not ended
    LaneMask unstarted = 0;  // lanes that have not started
    LaneMask ready = 0;      // suspended lanes that can resume
    std::array<LaneMask, kWaits> waiting{};
    // Lanes that have arrived at a split barrier (barrier_arrive, barrier_wait) and have not waited
    // yet.
    LaneMask owes_block_wait = 0;
    LaneMask owes_cluster_wait = 0;
    // One lane that has ended although the other one waits for it in a collective, which has to
    // report that; 0: none.
    LaneMask ended_early = 0;
    LaneMask reports_end = 0;

    unsigned group_count = 0;
    std::array<Group, kWarpLanes> groups;
    std::array<void*, kWarpLanes> operands;
    std::array<LaneMask, kWarpLanes> converged;  // what __activemask returns to each lane

    LaneMask& at(Wait wait) { return waiting[static_cast<std::size_t>(wait)]; }
    LaneMask at(Wait wait) const { return waiting[static_cast<std::size_t>(wait)]; }

    // Starts a new block, in which the warp has `count` lanes.
    void begin_block(unsigned count) {
        unstarted = live = lanes = count == kWarpLanes ? ~LaneMask{0} : bit(count) - 1;
        ready = owes_block_wait = owes_cluster_wait = ended_early = reports_end = 0;
        waiting.fill(0);
        group_count = 0;
    }
};

}  // namespace cuda_on_cpu
