// An iteration of expectation-maximisation as a case of the day's program.
#pragma once

#include "common/bench/program.hpp"

namespace day46 {

// dims: points x components x numbers of each. There is no case for more than kMostProducts
// multiply-adds, which the host would take too long to check, nor for fewer than ten points for
// each component.
inline constexpr double kMostProducts = 1e9;
course::Case make_mixture_case(const course::Dims& dims);

}  // namespace day46
