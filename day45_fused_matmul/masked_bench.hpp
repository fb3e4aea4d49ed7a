// The cases of the day's program that belong to masked products.
#pragma once

#include "common/bench/program.hpp"

namespace day45 {

// Makers for course::Program::make_cases. A size is count x m x n x k, for example 128x1024x1024x64; for a size of another kind they make
// a case without contestants.

// Q K^T / sqrt(k), and -Inf above the diagonal: the scores of causal attention, for `count` heads.
course::Case make_masked_case(const course::Dims& dims);

// An array for each product, in which each piece of 64 x 64 is kept or is not, one as likely as the other. The levels are built each
// time; last comes what is left of that time when they are known.
course::Case make_masked_by_array_case(const course::Dims& dims);

}  // namespace day45
