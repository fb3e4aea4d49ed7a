// What day 23's kernels find out about an array: 32 bytes, more than any atomic instruction
// changes.
#pragma once

#include <cuda_runtime.h>

namespace day23 {

struct Record {
    long long count;  // number of elements; if 0, the rest has no meaning
    long long sum;    // of them
    long long least;  // the smallest of them
    long long where;  // its index; the smallest one if there are several

    friend bool operator==(const Record&, const Record&) = default;
};

// The record of two sets of elements. The order does not matter, nor which are put together first.
__host__ __device__ constexpr Record combined(const Record& a, const Record& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const bool is_b = b.least < a.least || (b.least == a.least && b.where < a.where);
    return {a.count + b.count, a.sum + b.sum, is_b ? b.least : a.least, is_b ? b.where : a.where};
}

}  // namespace day23
