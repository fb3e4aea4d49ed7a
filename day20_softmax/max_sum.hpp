// What kernels of day 20 exchange, and what they compute.
#pragma once

namespace day20 {

enum class Output { kSoftmax, kLogSoftmax };

// A part of a row: its maximum, and the sum of exp(x - maximum). Of no elements: -Inf and 0.
struct alignas(8) MaxSum {
    float max;
    float sum;
};

}  // namespace day20
