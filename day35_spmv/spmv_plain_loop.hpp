// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "spmv.hpp"

namespace day35 {

void multiply_plainly(const CsrMatrix& csr, std::span<const float> x, std::span<float> y, int threads);

}  // namespace day35
