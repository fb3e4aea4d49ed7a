// Which accesses of a warp's lanes were one instruction?
//
// Each lane has left a trace: its events since the lanes last waited for each other. Lanes that
// took different ways come together again where all ways meet, as on a GPU: at the immediate
// post-dominator of the place where they parted, in the graph whose nodes are the places that were
// seen and whose edges lead from each event of a trace to the next.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

using Trace = std::span<const TraceEntry>;
using Traces = std::array<Trace, kLanes>;  // empty for lanes that did nothing, or do not exist

// Did all lanes that did something do the same, one event after the other? Their mask; 0 if they
// did not, or there are none.
LaneMask lanes_alike(const Traces& traces);

// The lanes of `mask` executed one instruction together; lane l's part in it is event[l] of its
// trace.
struct Instruction {
    LaneMask mask;
    std::array<std::uint32_t, kLanes> event;
};

// Calls `executed` for each instruction in an order in which a warp may have executed them; each
// event is part of one. Meetings take part but are not reported.
void converge(const Traces& traces, const std::function<void(const Instruction&)>& executed);

}  // namespace cuda_on_cpu::inspector
