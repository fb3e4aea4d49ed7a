// Cases of the day's program: alignments with their steps, affine gaps, the search of a database,
// and the Frechet distance.
#pragma once

#include "common/bench/program.hpp"

namespace day13 {

// Of one size or two: sequences of so many symbols. Without contestants where the plain loop would
// take long.
course::Case trace_case(const course::Dims& size);
course::Case local_trace_case(const course::Dims& size);
course::Case affine_case(const course::Dims& size);
course::Case frechet_case(const course::Dims& size);

// Of one size n: a query of n / 4 symbols, and n / 4 sequences with 1 to n symbols, at most 700.
course::Case search_case(const course::Dims& size);

}  // namespace day13
