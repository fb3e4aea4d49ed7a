// Reads sparse matrices in NIST's Matrix Market exchange format (R. Boisvert, R. Pozo, K.
// Remington, NISTIR 5935, 1996).
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "host/sparse_formats.hpp"

namespace day35 {

// What is wrong with a file: its message begins with the file's name and the number of the line.
class MatrixMarketError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The first line is `%%MatrixMarket matrix coordinate FIELD SYMMETRY`:
//   FIELD      real, integer (whole numbers of 64 bits) or pattern (no values: each is 1)
//   SYMMETRY   general; symmetric (below the diagonal only, and meant on both sides); skew-symmetric (the other side negated)
// Then comments, a line `rows cols entries`, and a line `row col value` for each entry, counted
// from 1, in any order. Entries that come twice both count. Values that float cannot hold are read
// as the nearest one it can, at most infinity. Throws MatrixMarketError for everything else, array
// and complex files among them.
CsrMatrix read_matrix_market(const std::filesystem::path& file);

// The same from text; `name` stands for the file in messages.
CsrMatrix parse_matrix_market(std::string_view text, const std::string& name);

}  // namespace day35
