// Where a part of a merge starts: the search that all versions share. It is in a file of its own
// because beyond/bulk_merge.cu, which is compiled apart from the lesson, needs it, too.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace day18 {

using Key = std::int32_t;

template <class Index>
__device__ Index smaller(Index x, Index y) {
    return x < y ? x : y;
}

// The co-rank of k: how many of the first k elements of the output come from `a`. The other
// k - co_rank(k) come from `b`.
//
// Compare a[i] with b[k - 1 - i]. If a[i] goes first, there are at most k - 1 elements before it, i
// from a and at most k - 1 - i from b, so it is one of the first k. If not, k elements go before
// it: a[0] to a[i - 1] and b[0] to b[k - 1 - i]. So for i = 0, 1, ... the answers are "yes" up to
// some element, and "no" from there on.
//
// <= and not <: of equal keys, the one from a goes first. A and B: pointers, or types with
// operator[].
template <class Index, class A, class B>
__device__ Index co_rank(Index k, A a, Index m, B b, Index n) {
    Index low = k > n ? k - n : 0;
    Index high = smaller(k, m);
    while (low < high) {
        const Index i = low + (high - low) / 2;
        if (a[i] <= b[k - 1 - i]) {
            low = i + 1;
        } else {
            high = i;
        }
    }
    return low;
}

}  // namespace day18
