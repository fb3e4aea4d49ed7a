// Finds the accesses of a warp's lanes that were one instruction.
//
// Each lane has left a trace: its events since the lanes last waited for each other. Lanes that
// diverged reconverge where all their paths meet, as on a GPU: at the immediate post-dominator of
// the place where they diverged. The nodes of the graph are the places in the traces; its edges
// lead from each event of a trace to the next.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

using Trace = std::span<const TraceEntry>;
// Empty for lanes that did nothing or do not exist.
using Traces = std::array<Trace, kLanes>;

// If all lanes with events have the same sequence of events, returns their mask. Otherwise, or if
// there are none, returns 0.
LaneMask lanes_alike(const Traces& traces);

// An instruction that the lanes of `mask` executed together; for lane l it is event[l] of its
// trace.
struct Instruction {
    LaneMask mask;
    std::array<std::uint32_t, kLanes> event;
};

// Calls `executed` for each instruction, in an order in which a warp may have executed them; each
// event is part of exactly one. Synchronisation points are instructions, too.
void converge(const Traces& traces, const std::function<void(const Instruction&)>& executed);

}  // namespace cuda_on_cpu::inspector
