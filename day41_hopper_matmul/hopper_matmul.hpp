// C = alpha A B + beta C with Hopper's TMA and wgmma: 16-bit operands, sums and C in FP32. The host
// API of the day.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/half_matmul.hpp"

namespace day41 {

using course::half_matmul::Gemm;
using course::half_matmul::KernelFor;
using course::half_matmul::Shape;
using course::half_matmul::Version;

// In the order of learning; from split_k on, what is fastest depends on the shape. All need compute
// capability 9.0; the last takes any alignment.
std::span<const Version> versions();

// The tiles that `fitted` chooses from. Two of them are versions themselves.
std::span<const Version> tiles_to_choose_from();

// The name of the tile that it chooses for a shape, on a GPU with so many multiprocessors.
std::string tile_for(const Shape& shape, std::size_t multiprocessors);

}  // namespace day41
