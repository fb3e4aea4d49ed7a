// The matrices that the program times and the tests start from. Values are in [-1, 1), the same
// from every compiler. All throw std::invalid_argument for numbers below 0 and matrices that 32-bit
// rows and columns cannot number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/csr_matrix.hpp"

namespace day35 {

// `band` neighbouring columns around the diagonal, fewer in the first and last rows. `band` >= 1
// and odd.
CsrMatrix banded(Index rows, Index band);

// `per_row` columns in every row, each anywhere; a column may come twice. Throws for entries
// without a column to be in.
CsrMatrix uniform_random(Shape shape, Index per_row);

// Rows whose lengths follow a power law: more than t entries with probability proportional to
// t^(-4/3), as the degrees of many networks do; `mean` about, the longest at most a sixteenth of
// the columns. Columns are anywhere. mean >= 1.
CsrMatrix power_law(Shape shape, double mean);

// The 5-point Laplacian of a square grid of side^2 points: 4 on the diagonal, -1 for each
// neighbour.
CsrMatrix laplacian_2d(Index side);

// As from mechanics in three dimensions: side^3 nodes, each connected with the 27 nodes around it
// and itself, and each connection a dense block of `unknowns` x `unknowns`.
CsrMatrix node_blocks(Index side, Index unknowns);

// In [-8, 8]: products of two are at most 64, and float adds 2^18 of them without rounding.
std::vector<float> whole_numbers(std::size_t size, std::uint64_t seed);

// The same entries with whole_numbers() as values.
CsrMatrix with_whole_values(const CsrMatrix& csr);

// From rows given one by one.
CsrMatrix from_rows(Index cols, const std::vector<std::vector<Index>>& rows);

}  // namespace day35
