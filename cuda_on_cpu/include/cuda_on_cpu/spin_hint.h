#pragma once

#include <type_traits>

namespace cuda_on_cpu {

// Says that the calling CUDA thread may be waiting for another: lets the others of its block, and other blocks, run.
// On a GPU they would run anyway; here a thread runs until it gives way.
void spin_hint();

// The translator puts this into loops without a body, which may be part of a constexpr function.
constexpr void empty_loop() {
    if (!std::is_constant_evaluated()) spin_hint();
}

// The translator puts this into the condition of loops that read volatile memory: they may wait, or only compute. A hint
// after many rounds in which the thread did not wait for anybody is enough for the former, and costs the latter little.
extern constinit thread_local unsigned polls;  // of the running thread, since it last waited
constexpr void poll() {
    if (!std::is_constant_evaluated() && ++polls % 64 == 0) spin_hint();
}

}  // namespace cuda_on_cpu
