// Products with 16-bit results as a case of the day's program.
#pragma once

#include "common/bench/program.hpp"

namespace day41 {

// dims: m x n x k. The versions of rounded_result.hpp and cuBLAS. T: __half or __nv_bfloat16.
template <class T>
course::Case make_rounded_case(const course::Dims& dims);

}  // namespace day41
