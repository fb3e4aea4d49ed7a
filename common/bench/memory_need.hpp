// How much memory a program needs for a size that its machine has too little for: to say so.
#pragma once

#include <functional>
#include <string>

#include "common/bench/program.hpp"

namespace course {

struct MemoryNeed {
    double host = 0;    // bytes
    double device = 0;  // bytes; on the CPU stand-in the same machine's
};

// What make(size) would allocate, about: arrays grow with products of a size's numbers, so that
// those of a few small sizes tell. Not for small arrays, and nothing where the sizes are, or where
// a small case is refused.
MemoryNeed memory_need(const std::function<Case(const Dims&)>& make, const Dims& size);

// "needs about 1.2 PiB; this machine has 23 GiB, of which 21 GiB are free"; "" where by this
// estimate it would fit.
std::string text_of_missing_memory(const MemoryNeed& need);

}  // namespace course
