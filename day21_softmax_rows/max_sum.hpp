// Day 21: what the kernels and the host API both use.
#pragma once

namespace day21 {

enum class Output { kSoftmax, kLogSoftmax };

// A part of a row: its maximum, and the sum of exp(x - maximum). Of no elements: -Inf and 0.
struct alignas(8) MaxSum {
    float max;
    float sum;
};

}  // namespace day21
