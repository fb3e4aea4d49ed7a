// Products with a short K: outer products, and sums of a few. The dispatcher (step 14) runs them.
#pragma once

#include <cstddef>

#include "../sgemm.hpp"

namespace gemm {

// K of at most so many is shallow.
inline constexpr std::size_t kShallow = 16;

constexpr bool is_shallow(const Shape& shape) {
    return shape.k <= kShallow;
}

// Is K shallow, and C large enough to keep at least half of the current device busy? If not, the
// tiles of the dispatcher are at least as fast.
bool is_worth_a_shallow_kernel(const Shape& shape);

// Queues the product. Throws std::invalid_argument when K is not shallow, and as Kernel::launch
// does.
void launch_shallow(const Sgemm& gemm, cudaStream_t stream);

}  // namespace gemm
