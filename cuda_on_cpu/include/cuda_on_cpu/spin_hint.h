#pragma once

#include <type_traits>

namespace cuda_on_cpu {

// Says that the calling CUDA thread may be waiting for another: lets the others of its block, and other blocks, run.
// On a GPU they would run anyway; here a thread runs until it gives way.
void spin_hint();

// The translator puts this into the condition of loops that read volatile memory: they may wait, or only compute. A hint
// now and then is enough for the former and costs the latter little. Always true.
extern constinit thread_local unsigned polls;
constexpr bool poll() {
    if (!std::is_constant_evaluated() && ++polls % 64 == 0) spin_hint();
    return true;
}

}  // namespace cuda_on_cpu
