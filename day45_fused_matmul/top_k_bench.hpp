// The nearest neighbours as a case of the day's program.
#pragma once

#include "common/bench/program.hpp"

namespace course {

// dims: queries x points x d x k. Throws std::invalid_argument when they are not four, or there are fewer points than k.
Case make_top_k_case(const Dims& dims);

}  // namespace course
