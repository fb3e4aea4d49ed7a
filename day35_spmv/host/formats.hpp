// The other formats of a sparse matrix on the host, each with its conversion from CSR: eight ways
// to store the same entries. Which one is best depends on the lengths of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/csr_matrix.hpp"
#include "index.hpp"

namespace day35 {

// Coordinates (PMPP 14.2): row, column and value of each entry, sorted by row and then by column.
struct CooMatrix {
    std::vector<Index> rows;
    std::vector<Index> cols;
    std::vector<float> values;
};
CooMatrix to_coo(const CsrMatrix& csr);

// Compressed sparse columns: column c has the entries col_start[c] to col_start[c + 1] - 1, in
// ascending rows; entries of one place keep their order. It is CSR of the transposed matrix.
struct CscMatrix {
    std::vector<Offset> col_start;
    std::vector<Index> rows;
    std::vector<float> values;
};
CscMatrix to_csc(const CsrMatrix& csr);

// ELLPACK (PMPP 14.4): every row filled up to the longest one's `width`; entry k of row r is at
// k * rows + r.
struct EllMatrix {
    Shape shape;
    Index width = 0;
    std::vector<Index> cols;
    std::vector<float> values;
};
EllMatrix to_ell(const CsrMatrix& csr);

// ELL for the first `width` entries of each row and COO for the rest of the long rows (PMPP 14.5).
struct HybridMatrix {
    EllMatrix ell;
    CooMatrix coo;
};
HybridMatrix to_hybrid(const CsrMatrix& csr, Index width);
// The width is the largest that at least a third of the rows fill, the rule of N. Bell and M.
// Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented processors", SC
// 2009.
HybridMatrix to_hybrid(const CsrMatrix& csr);

// Jagged diagonals (PMPP 14.6): rows sorted by length, longest first; then the first entries of all
// rows, the second ones of all that have two, and so on. Entry k of the i-th row in `order` is at
// diagonal_start[k] + i.
struct JdsMatrix {
    std::vector<Index> order;
    std::vector<Offset> diagonal_start;
    std::vector<Index> cols;
    std::vector<float> values;
};
JdsMatrix to_jds(const CsrMatrix& csr);

// Rows of a slice, of SELL and packed SELL: a warp's.
inline constexpr Index kSliceRows = 32;

// SELL-C-sigma (M. Kreutzer et al., "A unified sparse matrix data format for efficient general
// sparse matrix-vector multiplication", SIAM J. Sci. Comput. 36, 2014), C = kSliceRows: an ELL of
// its own for every 32 rows. To make the rows of a slice alike they are sorted by length, but only
// within windows of `sigma` rows. Entry k of lane l of slice s is at slice_start[s] + 32 k + l; the
// lane's row is order[32 s + l], or 32 s + l where `order` is empty (sigma 1).
struct SellMatrix {
    std::vector<Index> order;
    std::vector<Offset> slice_start;
    std::vector<Index> cols;
    std::vector<float> values;
};
inline constexpr Index kDefaultSigma = 4096;
// Throws std::invalid_argument for sigma < 1.
SellMatrix to_sell(const CsrMatrix& csr, Index sigma);

// A slice of PackedSellMatrix: 16 bytes for 32 rows.
struct alignas(16) PackedSlice {
    std::uint32_t first_value = 0;      // of the slice, in steps of 32 values
    std::uint32_t first_code = 0;       // of the slice, in steps of 32 bytes
    Index base = 0;                     // smallest column of the slice
    std::uint32_t width_and_bytes = 0;  // 4 * width + log2(bytes of a code)

    static constexpr std::uint32_t kMostWidth = (1u << 30) - 1;

    constexpr std::uint32_t width() const { return width_and_bytes / 4; }
    constexpr std::uint32_t code_bytes() const { return 1u << (width_and_bytes % 4); }
};
static_assert(sizeof(PackedSlice) == 16);

// SELL whose columns are differences: the first of a row to the slice's base, each further one to
// the previous column. All differences of a slice have 1, 2 or 4 bytes, whatever its largest needs;
// the largest code of that size marks a place without an entry.
struct PackedSellMatrix {
    std::vector<Index> order;
    std::vector<PackedSlice> slices;
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
};
// Throws std::invalid_argument for sigma < 1, and, with the row, for more than
// PackedSlice::kMostWidth entries in it.
PackedSellMatrix to_packed_sell(const CsrMatrix& csr, Index sigma);

// Where entry k of `lane` is in a packed slice of this width, values and codes alike. Four entries
// of a lane are adjacent, so that it loads four values with one 16-byte load; the last columns,
// when the width is no multiple of four, are stored one by one.
constexpr std::size_t packed_place(std::size_t width, std::size_t k, std::size_t lane) {
    return k < width / 4 * 4 ? 128 * (k / 4) + 4 * lane + k % 4 : 32 * k + lane;
}

// The lengths of the rows, and how much they differ.
struct RowStatistics {
    Shape shape;
    Offset entries = 0;
    Index longest = 0;
    Index empty = 0;    // rows without an entry
    double mean = 0;    // entries of a row
    double spread = 0;  // standard deviation of the rows' lengths, over their mean
    // Places over entries, 1 or more, of: ELL; SELL with sigma 1, and with rows sorted in windows
    // of kPackedSigma.
    double ell_filling = 1;
    double sell_filling = 1;
    double sorted_filling = 1;
};
inline constexpr Index kPackedSigma = 1024;
RowStatistics row_statistics(const CsrMatrix& csr);

}  // namespace day35
