#include "order_notes.hpp"

#include <algorithm>
#include <cmath>

#include "block.hpp"
#include "cuda_on_cpu/language.h"
#include "shared_arena.hpp"

namespace cuda_on_cpu {

SeenAtomics* seen_atomics = nullptr;
bool sums_are_late = false;
void (*at_block_barrier)() = nullptr;
std::vector<std::function<void()>> late_sums;
constinit thread_local bool order_may_show = false;
constinit thread_local bool result_unused = false;

namespace {

// Was the last call made by another thread of the same block? Stores the present block and thread
// for the next call.
bool another_does(std::uint64_t& block, unsigned& thread) {
    const unsigned running = block_runner().scheduler().thread_number();
    const bool another = block == current_block && thread != running;
    block = current_block;
    thread = running;
    return another;
}

}  // namespace

// Read by inlined atomic functions. It is in constant memory because an inspection would otherwise
// count its loads as those of a __device__ variable, which a GPU would not make.
CUDA_ON_CPU_CONSTANT constinit bool atomics_are_noted = false;

bool note_atomic(AtomicKind kind, const void* address, double size) {
    BlockRunner& runner = block_runner();
    if (seen_atomics == nullptr || !runner.runs_block()) return false;
    SeenAtomics& seen = *seen_atomics;
    seen.any = true;
    if (kind == AtomicKind::float_sum) {
        ++seen.float_sums;
        if (std::isfinite(size)) seen.largest_sum = std::max(seen.largest_sum, size);
    }
    const bool is_sum = kind == AtomicKind::sum || kind == AtomicKind::float_sum;
    const bool in_shared = runner.in_dynamic_shared(address) || in_static_shared(address);
    if (is_sum && !in_shared) {
        if (another_does(seen.summing_block, seen.summing_thread)) seen.sums_by_threads = true;
        return sums_are_late;
    }
    if (!is_sum && (kind == AtomicKind::ordered || !in_shared) &&
        another_does(seen.ordered_block, seen.ordered_thread))
        seen.in_order_of_threads = true;
    return false;
}
void put_off(void (*sum)(void*, double), void* address, double value) {
    late_sums.push_back([=] { sum(address, value); });
}
void put_off(void (*sum)(void*, unsigned long long), void* address, unsigned long long value) {
    late_sums.push_back([=] { sum(address, value); });
}

}  // namespace cuda_on_cpu
