// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "beyond/selective_scan.hpp"
#include "scan.hpp"

namespace day16 {

template <class T>
void scan_plainly(std::span<const T> in, std::span<T> out, int threads);

// The recurrences of a selective scan, a channel after the other.
void selective_scan_plainly(const SelectiveInputs& inputs, std::span<float> y, int threads);

}  // namespace day16
