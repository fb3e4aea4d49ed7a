// Products whose C has few rows or few columns: the matrix-vector product, and wider ones. The
// dispatcher (step 14) runs them.
#pragma once

#include <cstddef>

#include "../sgemm.hpp"

namespace gemm {

// C with at most this many rows or columns is thin.
inline constexpr std::size_t kThin = 16;

constexpr bool is_thin(const Shape& shape) {
    return shape.m <= kThin || shape.n <= kThin;
}

// The number of blocks that keeps the current device busy, about.
unsigned thin_blocks();

// Is the shape thin, and large enough to keep at least half of the current device busy? If not, a
// small tile is at least as fast.
bool is_worth_a_thin_kernel(const Shape& shape);

// What launch_thin() needs with about `blocks` blocks. Throws std::invalid_argument when the shape
// is not thin.
ScratchSize thin_scratch(const Shape& shape, unsigned blocks);

// Queues the product of a thin shape on about `blocks` blocks. Throws std::invalid_argument when
// the shape is not thin, `blocks` is 0, or the scratch memory is smaller than thin_scratch(); and
// as Kernel::launch does.
void launch_thin(unsigned blocks, const Sgemm& gemm, cudaStream_t stream);

}  // namespace gemm
