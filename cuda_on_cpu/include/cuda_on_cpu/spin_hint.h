#pragma once

#include <type_traits>

#include "cuda_on_cpu/needs_cpp20.h"

namespace cuda_on_cpu {

// The calling CUDA thread may be waiting for another: lets the others of its block, and other
// blocks, run. On a GPU they would run anyway; here a thread runs until it yields.
void spin_hint();

// The translator puts this into loops without a body, which may be part of a constexpr function.
constexpr void empty_loop() {
    if (!std::is_constant_evaluated()) spin_hint();
}

// The translator puts this into the condition of loops that read volatile memory: they may wait, or
// only compute. A hint after many rounds in which the thread did not wait for anybody is enough for
// the former, and costs the latter little.
extern constinit thread_local unsigned polls;  // of the running thread, since it last waited
constexpr void poll() {
    if (!std::is_constant_evaluated() && ++polls % 64 == 0) spin_hint();
}

// The translator puts this into the place of __ldcg, __ldg and the like in loops that do not count:
// loaded again and again from one address (or two in turn), they wait for another thread to store
// there.
extern constinit thread_local const void* loaded_last[2];
template <class T>
T load_in_loop(const T* address) {
    if (address == loaded_last[0] || address == loaded_last[1]) {
        poll();
    } else {
        loaded_last[1] = loaded_last[0];
        loaded_last[0] = address;
    }
    return *address;
}

// Warp-synchronous code relies on the lanes of a warp to run each statement together, as they did
// on GPUs before Volta. In functions that the translator finds to be such code, `s[i] = x` on
// volatile memory becomes `s[i] = value_in_step(x), step()`: with CUDA_ON_CPU_LOCKSTEP=1 the lanes
// of a warp that are together wait for each other between load and store, and after the store.
extern constinit bool lockstep;
void wait_for_lanes_in_step(unsigned place);  // `place`: another one for each call in the source
inline void step(unsigned place) {
    if (lockstep) wait_for_lanes_in_step(place);
}
template <class T>
T value_in_step(T value, unsigned place) {
    step(place);
    return value;
}

// A block of this OS thread has done something whose result depends on the order of threads by
// right: it has read a clock, or polled memory.
extern constinit thread_local bool order_may_show;

// What an atomic function means for the question whether results depend on the order of threads.
enum class AtomicKind {
    sum,        // of integers, its result is not used: any order gives the same
    float_sum,  // the same, up to rounding
    extreme,    // minimum, maximum, and, or, its result not used
    ordered     // another, or its result is used: a thread learns which others came before
};
// Only a copy of the process that tries another order (src/order_check.hpp) wants to know. `size`
// of a sum of floating-point numbers: from it the error of rounding follows. True: the caller hands
// its sum to put_off() instead.
extern constinit bool atomics_are_noted;
bool note_atomic(AtomicKind kind, const void* address, double size);
void put_off(void (*sum)(void* address, double value), void* address, double value);
void put_off(void (*sum)(void* address, unsigned long long value), void* address, unsigned long long value);
// The translator sets it around a call of an atomic function that is a statement by itself.
extern constinit thread_local bool result_unused;
__attribute__((always_inline)) inline bool note(AtomicKind if_unused, const void* address, double size = 0) {
    if (atomics_are_noted) [[unlikely]]
        return note_atomic(result_unused ? if_unused : AtomicKind::ordered, address, size);
    return false;
}

}  // namespace cuda_on_cpu
