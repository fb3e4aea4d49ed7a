#pragma once

#include <type_traits>

#include "cuda_on_cpu/needs_cpp20.h"

namespace cuda_on_cpu {

// To be called where the CUDA thread may be waiting for another: lets the other threads of its
// block, and other blocks, run. On a GPU they run at the same time; here a thread runs until it
// yields.
void spin_hint();

// The translator inserts this into loops without a body, which may be part of a constexpr function.
constexpr void empty_loop() {
    if (!std::is_constant_evaluated()) spin_hint();
}

// The translator inserts this into the condition of loops that read volatile memory, which may wait
// or only compute. A hint after many iterations without a wait is enough for the former, and costs
// the latter little.
extern constinit thread_local unsigned polls;  // of the running thread, since its last wait
constexpr void poll() {
    if (!std::is_constant_evaluated() && ++polls % 64 == 0) spin_hint();
}

// The translator replaces __ldcg, __ldg and similar loads with this in loops that do not count. A
// loop that loads repeatedly from one address (or from two in turn) waits for another thread to
// store there.
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

// Warp-synchronous code relies on the lanes of a warp to execute each statement together, as they
// did on GPUs before Volta. In functions that the translator recognises as such code, `s[i] = x` on
// volatile memory becomes `s[i] = value_in_step(x), step()`: with CUDA_ON_CPU_LOCKSTEP=1 the
// converged lanes of a warp wait for each other between load and store, and after the store.
extern constinit bool lockstep;
// `place` is different for each call in the source.
void wait_for_lanes_in_step(unsigned place);
inline void step(unsigned place) {
    if (lockstep) wait_for_lanes_in_step(place);
}
template <class T>
T value_in_step(T value, unsigned place) {
    step(place);
    return value;
}

// A kernel may exchange values with the host while it runs: from now on accesses of the host to
// managed memory before it has waited for a kernel are no mistakes (src/managed_watch.hpp).
void share_with_host();

// A block of this OS thread has done something whose result may legitimately depend on the order of
// threads: it has read a clock, or polled memory.
extern constinit thread_local bool order_may_show;

// How an atomic function affects whether results depend on the order of threads.
enum class AtomicKind {
    sum,        // of integers, result unused: any order gives the same sum
    float_sum,  // the same in floating point: the order changes only the rounding
    extreme,    // minimum, maximum, and, or, with the result unused
    ordered     // any other, or its result is used: a thread can observe which others came before
};
// Only needed in a copy of the process that tries another order (src/order_check.hpp). `size` of a
// sum of floating-point numbers is the basis of the bound on its rounding error. True: the caller
// passes its operand to put_off() instead.
extern constinit bool atomics_are_noted;
bool note_atomic(AtomicKind kind, const void* address, double size);
void put_off(void (*sum)(void* address, double value), void* address, double value);
void put_off(void (*sum)(void* address, unsigned long long value), void* address, unsigned long long value);
// The translator sets this around a call of an atomic function that is a statement by itself.
extern constinit thread_local bool result_unused;
__attribute__((always_inline)) inline bool note(AtomicKind if_unused, const void* address, double size = 0) {
    if (atomics_are_noted) [[unlikely]]
        return note_atomic(result_unused ? if_unused : AtomicKind::ordered, address, size);
    return false;
}

}  // namespace cuda_on_cpu
