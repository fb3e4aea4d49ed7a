// Cases of the day's program: alignments with their steps, affine gaps, the search of a database,
// and the Frechet distance.
#pragma once

#include <span>

#include "common/bench/program.hpp"

namespace day13 {

// The least instructions of a cell, as beyond/strips.cuh counts them. Those for integers execute on
// 64 lanes of an SM per cycle, from compute capability 7.5 to 9.0.
constexpr double kEditInstructions = 4.5;   // 2 viaddmin; comparison, selection and addition: some merge
constexpr double kLocalInstructions = 5.5;  // 2 viaddmax; comparison, selection, addition; half a maximum

// Cells per second, and which share of the instructions that the SMs could issue they are, at the
// highest clock rate.
void add_rates(std::span<course::Record> records, double cells, double instructions);

// Of one size or two: sequences of so many symbols. Without contestants where the plain loop would
// take long.
course::Case trace_case(const course::Dims& size);
course::Case local_trace_case(const course::Dims& size);
course::Case affine_case(const course::Dims& size);
course::Case frechet_case(const course::Dims& size);

// Of one size n: a query of n / 4 symbols, at most 512, and n / 4 sequences or n^2 / 4096, the
// larger, with 1 to n symbols, at most 700.
course::Case search_case(const course::Dims& size);

}  // namespace day13
