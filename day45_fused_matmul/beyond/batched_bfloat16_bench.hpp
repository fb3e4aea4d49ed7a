// Batched products of BF16 matrices as a case of the day's program.
#pragma once

#include <vector>

#include "common/bench/program.hpp"
#include "common/device/operands.hpp"

namespace day45 {

// dims: count x m x n x k; of others, no case.
course::Case make_batched_bfloat16_case(const course::Dims& dims, course::Op op_a, course::Op op_b);

// For --sweep: 200 random shapes, in all layouts. The last version beside cuBLAS.
std::vector<course::Dims> sweep_of_batches();
course::Case make_batched_bfloat16_sweep(const course::Dims& dims);

}  // namespace day45
