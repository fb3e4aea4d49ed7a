// C = alpha A B + beta C on tensor cores: 16-bit operands, sums and C in FP32. The host API of the
// day.
#pragma once

#include <span>

#include "common/bench/half_matmul.hpp"

namespace day40 {

using course::half_matmul::Gemm;
using course::half_matmul::KernelFor;
using course::half_matmul::Shape;
using course::half_matmul::Version;

// In the order of learning. Version::constraint names the compute capability and shared memory that
// a version needs.
std::span<const Version> versions();

}  // namespace day40
