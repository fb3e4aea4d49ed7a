// The selective scan as a case of the day's program.
#pragma once

#include "common/bench/program.hpp"

namespace day16 {

// dims: batch x channels x time steps x states; of others, no case.
course::Case make_selective_case(const course::Dims& dims);

}  // namespace day16
