// The other formats of a sparse matrix on the host: six ways to store the same entries. Each can be
// made `from` CSR and gives back csr(), entry for entry, zeros and duplicates included;
// convert<To>(matrix) goes from any to any.
//
// As for CSR: a matrix never changes, copies share its arrays, and every constructor checks its
// invariants: std::invalid_argument names the row or entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "host/csr_matrix.hpp"

namespace day35 {

// The column of a place that only fills up a format's rectangle. It is never multiplied: 0 * Inf is
// not 0.
inline constexpr Index kNoColumn = -1;

// Coordinates (PMPP 14.2): row, column and value of each entry, sorted by row and then by column.
class CooMatrix {
  public:
    CooMatrix(Shape shape, std::vector<Index> rows, std::vector<Index> cols, std::vector<float> values);
    // From entries in any order; duplicates stay in the order they came in.
    static CooMatrix sorted(Shape shape, std::span<const Index> rows, std::span<const Index> cols,
                            std::span<const float> values);
    static CooMatrix from(const CsrMatrix& csr);
    CsrMatrix csr() const;

    Shape shape() const { return shape_; }
    std::span<const Index> rows() const { return rows_.span(); }
    std::span<const Index> cols() const { return cols_.span(); }
    std::span<const float> values() const { return values_.span(); }

  private:
    Shape shape_;
    SharedArray<Index> rows_;
    SharedArray<Index> cols_;
    SharedArray<float> values_;
};

// ELLPACK (PMPP 14.4): every row filled up to the longest one's `width`; entry k of row r stands at
// k * rows + r.
class EllMatrix {
  public:
    EllMatrix(Shape shape, Index width, std::vector<Index> cols, std::vector<float> values);
    static EllMatrix from(const CsrMatrix& csr);
    CsrMatrix csr() const;

    Shape shape() const { return shape_; }
    Index width() const { return width_; }
    std::span<const Index> cols() const { return cols_.span(); }
    std::span<const float> values() const { return values_.span(); }

  private:
    Shape shape_;
    Index width_;
    SharedArray<Index> cols_;
    SharedArray<float> values_;
};

// ELL for the first entries of each row and COO for the rest of the long rows (PMPP 14.5).
class HybridMatrix {
  public:
    HybridMatrix(EllMatrix ell, CooMatrix coo);
    // The width is the largest that at least a third of the rows fill, the rule of N. Bell and M.
    // Garland, "Implementing sparse matrix-vector multiplication on throughput-oriented
    // processors", SC 2009.
    static HybridMatrix from(const CsrMatrix& csr);
    static HybridMatrix from(const CsrMatrix& csr, Index width);
    CsrMatrix csr() const;

    Shape shape() const { return ell_.shape(); }
    const EllMatrix& ell() const { return ell_; }
    const CooMatrix& coo() const { return coo_; }

  private:
    EllMatrix ell_;
    CooMatrix coo_;
};

// Jagged diagonals (PMPP 14.6): rows sorted by length, longest first; then the first entries of all
// rows, the second ones of all that have two, and so on. Entry k of the i-th row in `order` stands
// at diagonal_start[k] + i.
class JdsMatrix {
  public:
    JdsMatrix(Shape shape, std::vector<Index> order, std::vector<Offset> diagonal_start,
              std::vector<Index> cols, std::vector<float> values);
    static JdsMatrix from(const CsrMatrix& csr);
    CsrMatrix csr() const;

    Shape shape() const { return shape_; }
    std::span<const Index> order() const { return order_.span(); }
    std::span<const Offset> diagonal_start() const { return diagonal_start_.span(); }
    std::span<const Index> cols() const { return cols_.span(); }
    std::span<const float> values() const { return values_.span(); }

  private:
    Shape shape_;
    SharedArray<Index> order_;
    SharedArray<Offset> diagonal_start_;
    SharedArray<Index> cols_;
    SharedArray<float> values_;
};

// Rows of a slice, of SELL and packed SELL: a warp's.
inline constexpr Index kSliceRows = 32;

// SELL-C-sigma (M. Kreutzer et al., "A unified sparse matrix data format for efficient general
// sparse matrix-vector multiplication", SIAM J. Sci. Comput. 36, 2014), C = kSliceRows: an ELL of
// its own for every 32 rows. To make the rows of a slice alike they are sorted by length, but only
// within windows of `sigma` rows. Entry k of lane l of slice s stands at slice_start[s] + 32 k + l;
// the lane's row is order[32 s + l], or 32 s + l where `order` is empty.
class SellMatrix {
  public:
    SellMatrix(Shape shape, std::vector<Index> order, std::vector<Offset> slice_start,
               std::vector<Index> cols, std::vector<float> values);
    // sigma 1: rows stay where they are, `order` is empty. Throws std::invalid_argument for sigma <
    // 1.
    static SellMatrix from(const CsrMatrix& csr, Index sigma);
    static SellMatrix from(const CsrMatrix& csr) { return from(csr, kDefaultSigma); }
    CsrMatrix csr() const;

    static constexpr Index kDefaultSigma = 4096;

    Shape shape() const { return shape_; }
    std::span<const Index> order() const { return order_.span(); }
    std::span<const Offset> slice_start() const { return slice_start_.span(); }
    std::span<const Index> cols() const { return cols_.span(); }
    std::span<const float> values() const { return values_.span(); }

  private:
    Shape shape_;
    SharedArray<Index> order_;
    SharedArray<Offset> slice_start_;
    SharedArray<Index> cols_;
    SharedArray<float> values_;
};

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
static_assert(std::is_trivially_copyable_v<PackedSlice> && sizeof(PackedSlice) == 16);

// SELL whose columns are differences: the first of a row to the slice's base, each further one to
// the column before. All differences of a slice have 1, 2 or 4 bytes, whatever its largest needs;
// the largest code of that size fills up (kNoCode). Four columns of the slice are woven together,
// so that a lane finds its next four values in 16 bytes: of width w, the columns [0, w / 4 * 4)
// stand by fours, place 32 * 4 * (k / 4) + 4 * lane + k % 4, the rest by ones, place 32 k + lane;
// values and codes alike.
class PackedSellMatrix {
  public:
    PackedSellMatrix(Shape shape, std::vector<Index> order, std::vector<PackedSlice> slices,
                     std::vector<std::uint8_t> codes, std::vector<float> values);
    // `sigma` as in SellMatrix. Throws std::invalid_argument, with the row, for one of more than
    // PackedSlice::kMostWidth.
    static PackedSellMatrix from(const CsrMatrix& csr, Index sigma);
    static PackedSellMatrix from(const CsrMatrix& csr) { return from(csr, 1); }
    CsrMatrix csr() const;

    // Where entry k of `lane` stands in a slice of this width.
    static constexpr std::size_t place(std::size_t width, std::size_t k, std::size_t lane) {
        return k < width / 4 * 4 ? 128 * (k / 4) + 4 * lane + k % 4 : 32 * k + lane;
    }

    Shape shape() const { return shape_; }
    std::span<const Index> order() const { return order_.span(); }
    std::span<const PackedSlice> slices() const { return slices_.span(); }
    std::span<const std::uint8_t> codes() const { return codes_.span(); }
    std::span<const float> values() const { return values_.span(); }

  private:
    Shape shape_;
    SharedArray<Index> order_;
    SharedArray<PackedSlice> slices_;
    SharedArray<std::uint8_t> codes_;
    SharedArray<float> values_;
};

template <class To, class From>
To convert(const From& matrix) {
    return To::from(matrix.csr());
}

}  // namespace day35
