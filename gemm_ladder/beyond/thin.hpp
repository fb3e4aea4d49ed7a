// Products whose C has few rows or few columns: the matrix-vector product and its neighbours. The dispatcher (step 14) runs them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "../sgemm.hpp"

namespace gemm {

// C with at most this many rows or columns is thin.
inline constexpr std::size_t kThin = 16;

constexpr bool is_thin(const Shape& shape) {
    return shape.m <= kThin || shape.n <= kThin;
}

// Is it also large enough for the reading of the large factor to count? If not, launching is most of it, and a small tile does.
constexpr bool is_worth_a_thin_kernel(const Shape& shape) {
    constexpr std::size_t kLeast = std::size_t{1} << 18;  // elements
    return is_thin(shape) && std::max(shape.m, shape.n) * shape.k >= kLeast;
}

// About how many blocks keep the current device busy.
unsigned thin_blocks();

// For about `blocks` blocks.
ScratchSize thin_scratch(const Shape& shape, unsigned blocks);

// Queues the product of a thin shape on about `blocks` blocks. Throws std::invalid_argument when the shape is not thin, `blocks` is 0,
// or the scratch memory is less than thin_scratch() says, and as Kernel::launch does.
void launch_thin(unsigned blocks, const Sgemm& gemm, cudaStream_t stream);

}  // namespace gemm
