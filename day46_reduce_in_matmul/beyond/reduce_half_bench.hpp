// Minima of products of 16-bit matrices, for day 46's program.
#pragma once

#include "common/bench/program.hpp"

namespace day46 {

// The least dot product of each row, of m x n x k: FP16, or BF16. Without contestants for more
// than 2^30 distances, which take long to verify.
course::Case make_half_case(const course::Dims& dims);
course::Case make_bfloat16_case(const course::Dims& dims);

}  // namespace day46
