// Estimates how much memory a program needs for a size that does not fit into its machine, for the
// error message.
#pragma once

#include <functional>
#include <string>

#include "common/bench/program.hpp"

namespace course {

struct MemoryNeed {
    double host = 0;    // bytes
    double device = 0;  // bytes; on the CPU stand-in, memory of the same machine
};

// An estimate of what make(size) would allocate. The sizes of arrays are products of the extents
// in `size`, so the estimate extrapolates from a few small cases. It ignores small arrays, and is 0
// where a small case throws.
MemoryNeed memory_need(const std::function<Case(const Dims&)>& make, const Dims& size);

// "needs about 1.2 PiB; this machine has 23 GiB, of which 21 GiB are free"; "" where the estimate
// fits.
std::string text_of_missing_memory(const MemoryNeed& need);

}  // namespace course
