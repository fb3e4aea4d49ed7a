// Notes of a kernel's threads for order_check.hpp, which checks in a copy of the process whether
// the results depend on the order of the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cuda_on_cpu/spin_hint.h"

namespace cuda_on_cpu {

// The calls of atomic functions in a copy's run, for the process that compares.
struct SeenAtomics {
    bool any = false;
    bool in_order_of_threads = false;  // their results may legitimately depend on the order within a block
    std::uint64_t ordered_block = ~std::uint64_t{0};  // the last block that called one ...
    unsigned ordered_thread = 0;  // ... whose result depends on the order, and which thread
    std::uint64_t summing_block = ~std::uint64_t{0};  // the last block with a sum in device memory ...
    unsigned summing_thread = 0;                      // ... and its thread
    bool sums_by_threads = false;                     // several threads of one block add to it
    std::uint64_t float_sums = 0;
    double largest_sum = 0;
    bool shared_memory = false;
    bool failed = false;
};
extern SeenAtomics* seen_atomics;  // shared by copies; null: nothing is noted

// Called when a barrier of a block has completed; null: nothing to do.
extern void (*at_block_barrier)();

// Sums in device memory are added after the last block: put_off() keeps them here.
extern bool sums_are_late;
extern std::vector<std::function<void()>> late_sums;

}  // namespace cuda_on_cpu
