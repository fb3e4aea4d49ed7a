// Where matrices come from: generators, for the program and the tests, and Matrix Market files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "host/csr_matrix.hpp"

namespace day35 {

// --- Generators (matrix_generators.cpp) ----------------------------------------------------------
//
// Values are in [-1, 1), the same from every compiler. All throw std::invalid_argument for numbers
// below 0 and matrices that 32-bit rows and columns cannot number.

// `band` adjacent columns around the diagonal, fewer in the first and last rows. `band` >= 1
// and odd.
CsrMatrix banded(Index rows, Index band);

// `per_row` columns in every row, each anywhere; a column may come twice. Throws for entries
// without a column to be in.
CsrMatrix uniform_random(Shape shape, Index per_row);

// Rows whose lengths follow a power law: more than t entries with probability proportional to
// t^(-4/3), as the degrees of many networks do; `mean` about, the longest at most a sixteenth of
// the columns. Columns are anywhere. mean >= 1.
CsrMatrix power_law(Shape shape, double mean);

// R-MAT (Chakrabarti, Zhan and Faloutsos, 2004): `per_row` entries per row on average, each in a
// quarter of the matrix drawn with probability 0.57, 0.19, 0.19 or 0.05, then in a quarter of that,
// and so on. Few rows and columns have most entries, as in social networks. `rows` is a power of 2.
CsrMatrix recursive(Index rows, Index per_row);

// Of `period` adjacent rows the first has `per_row` columns, each anywhere, and the others are
// empty. Both >= 1.
CsrMatrix mostly_empty(Shape shape, Index period, Index per_row);

// The 5-point Laplacian of a square grid of side^2 points: 4 on the diagonal, -1 for each
// neighbour.
CsrMatrix laplacian_2d(Index side);

// As from mechanics in three dimensions: side^3 nodes, each connected with the 27 nodes around it
// and itself, and each connection a dense block of `unknowns` x `unknowns`.
CsrMatrix node_blocks(Index side, Index unknowns);

// A kind of matrices: of about so many rows, each with about `mean` entries on average. Rows of a
// Laplacian have five, and those of the blocks whole blocks.
struct Family {
    const char* name;
    CsrMatrix (*make)(Index rows, Index mean);
};
std::span<const Family> families();

// In [-8, 8]: products of two are at most 64, and float adds 2^18 of them without rounding.
std::vector<float> whole_numbers(std::size_t size, std::uint64_t seed);

// The same entries with whole_numbers() as values.
CsrMatrix with_whole_values(const CsrMatrix& csr);

// From rows given one by one.
CsrMatrix from_rows(Index cols, const std::vector<std::vector<Index>>& rows);

// --- Files in NIST's Matrix Market exchange format (matrix_market.cpp) ---------------------------
//
// R. Boisvert, R. Pozo, K. Remington, NISTIR 5935, 1996.

// A file that is wrong: the message starts with its name and the number of the line.
class MatrixMarketError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The first line is `%%MatrixMarket matrix coordinate FIELD SYMMETRY`:
//   FIELD      real, integer (whole numbers of 64 bits) or pattern (no values: each is 1)
//   SYMMETRY   general; symmetric (entries below the diagonal, which count on both sides);
//              skew-symmetric (the same, with the other side negated)
// Then comments, a line `rows cols entries`, and a line `row col value` for each entry, counted
// from 1, in any order. Entries that come twice both count. Values that float cannot hold are read
// as the nearest one it can, at most infinity. Throws MatrixMarketError for everything else, array
// and complex files among them.
CsrMatrix read_matrix_market(const std::filesystem::path& file);

// The same from text; messages give `name` as the file.
CsrMatrix parse_matrix_market(std::string_view text, const std::string& name);

}  // namespace day35
