#include "host/sparse_formats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

#include "common/check/require.hpp"
#include "host/matrix_checks.hpp"

namespace day35 {
namespace {

// The number of entries before the first place that only fills up.
template <class Column>
Offset filled(Offset width, Column column) {
    Offset length = 0;
    while (length < width && column(length) != kNoColumn)
        ++length;
    return length;
}

// After a row's entries there is only filling. `column(r, k)` of width(r) places.
template <class Width, class Column>
void check_filling(const char* format, Offset rows, Width width, Column column) {
    const Offset bad = first_bad(rows, [&](Offset row) {
        const Offset length = filled(width(row), [&](Offset k) { return column(row, k); });
        for (Offset k = length; k < width(row); ++k) {
            if (column(row, k) != kNoColumn) return true;
        }
        return false;
    });
    course::require(bad == rows, format, ": row ", bad, " has an entry behind a place that is empty");
}

// CSR from rows of known length: copy(r, k) gives column and value of entry k of row r.
template <class Length, class Copy>
CsrMatrix collect(Shape shape, Length length, Copy copy) {
    std::vector<Offset> start(static_cast<std::size_t>(shape.rows) + 1, 0);
    for_all(shape.rows, [&](Offset row) { start[row + 1] = length(row); });
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Index> cols(start.back());
    std::vector<float> values(start.back());
    for_all(shape.rows, [&](Offset row) {
        for (Offset i = start[row]; i < start[row + 1]; ++i)
            std::tie(cols[i], values[i]) = copy(row, i - start[row]);
    });
    return {shape, std::move(start), std::move(cols), std::move(values)};
}

// --- Orders of rows ------------------------------------------------------------------------------

void check_order(const char* format, std::span<const Index> order, Index rows) {
    require_size(format, "order", order.size(), rows);
    std::vector<bool> seen(rows, false);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Index row = order[i];
        const auto place = [&] { return "order[" + std::to_string(i) + "] is " + std::to_string(row); };
        if (row < 0 || row >= rows) fail(format, place(), "; the matrix has ", rows, " rows");
        if (seen[row]) fail(format, place(), ", which came before; expected each row once");
        seen[row] = true;
    }
}

// Rows by falling length, within windows of `sigma`; rows of the same length keep their order.
std::vector<Index> order_by_length(const CsrMatrix& csr, Offset sigma) {
    std::vector<Index> order(csr.shape().rows);
    std::iota(order.begin(), order.end(), 0);
    const Offset rows = csr.shape().rows;
    for_all((rows + sigma - 1) / sigma, [&](Offset window) {
        std::stable_sort(order.begin() + window * sigma, order.begin() + std::min(rows, (window + 1) * sigma),
                         [&](Index a, Index b) { return csr.row_length(a) > csr.row_length(b); });
    });
    return order;
}

Index row_at(std::span<const Index> order, Offset place) {
    return order.empty() ? static_cast<Index>(place) : order[place];
}

// The position of each row in `order`.
std::vector<Index> places_of(std::span<const Index> order, Index rows) {
    std::vector<Index> places(rows);
    for_all(rows, [&](Offset place) { places[row_at(order, place)] = static_cast<Index>(place); });
    return places;
}

// --- Slices --------------------------------------------------------------------------------------

Offset slices_of(Index rows) {
    return (Offset{rows} + kSliceRows - 1) / kSliceRows;
}

// The longest row of each slice.
std::vector<Index> slice_widths(const CsrMatrix& csr, std::span<const Index> order) {
    std::vector<Index> widths(slices_of(csr.shape().rows), 0);
    for_all(static_cast<Offset>(widths.size()), [&](Offset slice) {
        const Offset end = std::min<Offset>(csr.shape().rows, (slice + 1) * kSliceRows);
        for (Offset place = slice * kSliceRows; place < end; ++place)
            widths[slice] = std::max(widths[slice], csr.row_length(row_at(order, place)));
    });
    return widths;
}

std::vector<Index> order_for_slices(const char* format, const CsrMatrix& csr, Index sigma) {
    course::require(sigma >= 1, format, ": sigma is ", sigma, "; expected 1 or more");
    return sigma == 1 ? std::vector<Index>() : order_by_length(csr, sigma);
}

// --- Codes of packed columns ---------------------------------------------------------------------

constexpr std::uint32_t largest_code(std::uint32_t bytes) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << 8 * bytes) - 1);
}

std::uint32_t read_code(const std::uint8_t* codes, std::uint32_t bytes, std::size_t place) {
    std::uint32_t code = 0;
    std::memcpy(&code, codes + place * bytes, bytes);  // little-endian, as every GPU's host is
    return code;
}

void write_code(std::uint8_t* codes, std::uint32_t bytes, std::size_t place, std::uint32_t code) {
    std::memcpy(codes + place * bytes, &code, bytes);
}

}  // namespace

// --- COO -----------------------------------------------------------------------------------------

CooMatrix::CooMatrix(Shape shape, std::vector<Index> rows, std::vector<Index> cols, std::vector<float> values)
    : shape_(shape), rows_(std::move(rows)), cols_(std::move(cols)), values_(std::move(values)) {
    check_shape("CooMatrix", shape);
    const auto row = this->rows();
    const auto col = this->cols();
    const auto entries = static_cast<Offset>(row.size());
    require_size("CooMatrix", "cols", col.size(), entries);
    require_size("CooMatrix", "values", this->values().size(), entries);
    const auto is_outside = [&](Offset i) {
        return row[i] < 0 || row[i] >= shape.rows || col[i] < 0 || col[i] >= shape.cols;
    };
    const auto is_unsorted = [&](Offset i) {
        return i > 0 && (row[i] < row[i - 1] || (row[i] == row[i - 1] && col[i] < col[i - 1]));
    };
    const auto name = [&](Offset i) {
        return "entry " + std::to_string(i) + " at (" + std::to_string(row[i]) + ", " +
               std::to_string(col[i]) + ")";
    };
    const Offset bad = first_bad(entries, [&](Offset i) { return is_outside(i) || is_unsorted(i); });
    if (bad == entries) return;
    if (is_outside(bad)) fail("CooMatrix", name(bad), " is outside of ", shape);
    fail("CooMatrix", name(bad), " comes after ", name(bad - 1), "; expected rows, then columns, to ascend");
}

CooMatrix CooMatrix::sorted(Shape shape, std::span<const Index> rows, std::span<const Index> cols,
                            std::span<const float> values) {
    require_size("CooMatrix", "cols", cols.size(), static_cast<Offset>(rows.size()));
    require_size("CooMatrix", "values", values.size(), static_cast<Offset>(rows.size()));
    std::vector<Offset> order(rows.size());
    std::iota(order.begin(), order.end(), Offset{0});
    std::stable_sort(order.begin(), order.end(), [&](Offset a, Offset b) {
        return rows[a] != rows[b] ? rows[a] < rows[b] : cols[a] < cols[b];
    });
    const auto in_order = [&]<class T>(std::span<const T> from) {
        std::vector<T> to(from.size());
        for_all(static_cast<Offset>(from.size()), [&](Offset i) { to[i] = from[order[i]]; });
        return to;
    };
    return {shape, in_order(rows), in_order(cols), in_order(values)};
}

CooMatrix CooMatrix::from(const CsrMatrix& csr) {
    std::vector<Index> rows(csr.entries());
    for_all(csr.shape().rows, [&](Offset row) {
        std::fill(rows.begin() + csr.row_start()[row], rows.begin() + csr.row_start()[row + 1],
                  static_cast<Index>(row));
    });
    return {csr.shape(),
            std::move(rows),
            {csr.cols().begin(), csr.cols().end()},
            {csr.values().begin(), csr.values().end()}};
}

CsrMatrix CooMatrix::csr() const {
    std::vector<Offset> start(static_cast<std::size_t>(shape_.rows) + 1, 0);
    for (const Index row : rows())
        ++start[row + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    return {shape_, std::move(start), {cols().begin(), cols().end()}, {values().begin(), values().end()}};
}

// --- ELL -----------------------------------------------------------------------------------------

EllMatrix::EllMatrix(Shape shape, Index width, std::vector<Index> cols, std::vector<float> values)
    : shape_(shape), width_(width), cols_(std::move(cols)), values_(std::move(values)) {
    check_shape("EllMatrix", shape);
    course::require(width >= 0, "EllMatrix: width is ", width, "; expected 0 or more");
    require_size("EllMatrix", "cols", this->cols().size(), Offset{shape.rows} * width);
    require_size("EllMatrix", "values", this->values().size(), Offset{shape.rows} * width);
    const auto column = [&, col = this->cols()](Offset row, Offset k) { return col[k * shape.rows + row]; };
    check_filling(
        "EllMatrix", shape.rows, [&](Offset) { return Offset{width}; }, column);
    check_rows(
        "EllMatrix", shape,
        [&](Offset row) { return filled(width, [&](Offset k) { return column(row, k); }); }, column);
}

EllMatrix EllMatrix::from(const CsrMatrix& csr) {
    Index width = 0;
    for (Index row = 0; row < csr.shape().rows; ++row)
        width = std::max(width, csr.row_length(row));
    return HybridMatrix::from(csr, width).ell();
}

CsrMatrix EllMatrix::csr() const {
    const Offset rows = shape_.rows;
    return collect(
        shape_,
        [&](Offset row) {
            return filled(width_, [&, col = cols()](Offset k) { return col[k * rows + row]; });
        },
        [&](Offset row, Offset k) { return std::pair(cols()[k * rows + row], values()[k * rows + row]); });
}

// --- Hybrid --------------------------------------------------------------------------------------

HybridMatrix::HybridMatrix(EllMatrix ell, CooMatrix coo) : ell_(std::move(ell)), coo_(std::move(coo)) {
    course::require(ell_.shape() == coo_.shape(), "HybridMatrix: the COO part is ", coo_.shape(),
                    "; expected ", ell_.shape(), " as the ELL part");
    const Offset width = ell_.width();
    const Offset last = (width - 1) * ell_.shape().rows;
    const auto entries = static_cast<Offset>(coo_.rows().size());
    const Offset bad = first_bad(entries, [&](Offset i) {
        if (width == 0) return false;
        const Index ell_col = ell_.cols()[last + coo_.rows()[i]];
        return ell_col == kNoColumn || ell_col > coo_.cols()[i];
    });
    if (bad < entries) {
        fail("HybridMatrix", "row ", coo_.rows()[bad], " has an entry in the COO part, column ",
             coo_.cols()[bad], ", that does not come after a full row of the ELL part");
    }
}

HybridMatrix HybridMatrix::from(const CsrMatrix& csr) {
    std::vector<Index> lengths(csr.shape().rows);
    for_all(csr.shape().rows, [&](Offset row) { lengths[row] = csr.row_length(static_cast<Index>(row)); });
    const auto third = lengths.begin() + static_cast<Offset>(lengths.size()) / 3;
    if (third == lengths.end()) return from(csr, 0);
    std::nth_element(lengths.begin(), third, lengths.end(), std::greater<>());
    return from(csr, *third);
}

HybridMatrix HybridMatrix::from(const CsrMatrix& csr, Index width) {
    course::require(width >= 0, "HybridMatrix: width is ", width, "; expected 0 or more");
    const Shape shape = csr.shape();
    const Offset rows = shape.rows;
    const auto start = csr.row_start();
    std::vector<Index> ell_cols(rows * width, kNoColumn);
    std::vector<float> ell_values(rows * width, 0.0f);
    const auto in_ell = [&](Offset row) { return std::min<Offset>(width, start[row + 1] - start[row]); };
    for_all(rows, [&](Offset row) {
        for (Offset k = 0; k < in_ell(row); ++k) {
            ell_cols[k * rows + row] = csr.cols()[start[row] + k];
            ell_values[k * rows + row] = csr.values()[start[row] + k];
        }
    });
    const CsrMatrix rest = collect(
        shape, [&](Offset row) { return start[row + 1] - start[row] - in_ell(row); },
        [&](Offset row, Offset k) {
            const Offset i = start[row] + width + k;
            return std::pair(csr.cols()[i], csr.values()[i]);
        });
    return {{shape, width, std::move(ell_cols), std::move(ell_values)}, CooMatrix::from(rest)};
}

CsrMatrix HybridMatrix::csr() const {
    const CsrMatrix first = ell_.csr();
    const CsrMatrix rest = coo_.csr();
    return collect(
        shape(),
        [&](Offset row) {
            return Offset{first.row_length(static_cast<Index>(row))} +
                   rest.row_length(static_cast<Index>(row));
        },
        [&](Offset row, Offset k) {
            const Offset in_first = first.row_length(static_cast<Index>(row));
            const CsrMatrix& part = k < in_first ? first : rest;
            const Offset i = part.row_start()[row] + (k < in_first ? k : k - in_first);
            return std::pair(part.cols()[i], part.values()[i]);
        });
}

// --- JDS -----------------------------------------------------------------------------------------

namespace {

// Length of the row at `place`: of how many diagonals it is part.
Offset jds_length(std::span<const Offset> diagonal_start, Offset place) {
    const auto diagonals = static_cast<Offset>(diagonal_start.size()) - 1;
    Offset low = 0;
    Offset high = diagonals;
    while (low < high) {
        const Offset middle = (low + high) / 2;
        if (diagonal_start[middle + 1] - diagonal_start[middle] > place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

}  // namespace

JdsMatrix::JdsMatrix(Shape shape, std::vector<Index> order, std::vector<Offset> diagonal_start,
                     std::vector<Index> cols, std::vector<float> values)
    : shape_(shape),
      order_(std::move(order)),
      diagonal_start_(std::move(diagonal_start)),
      cols_(std::move(cols)),
      values_(std::move(values)) {
    check_shape("JdsMatrix", shape);
    check_order("JdsMatrix", this->order(), shape.rows);
    const auto start = this->diagonal_start();
    course::require(!start.empty(), "JdsMatrix: diagonal_start has 0 elements; expected 1 or more");
    course::require(start[0] == 0, "JdsMatrix: diagonal_start[0] is ", start[0], "; expected 0");
    Offset before = shape.rows;
    for (std::size_t k = 0; k + 1 < start.size(); ++k) {
        const Offset length = start[k + 1] - start[k];
        if (length < 0 || length > before) {
            fail("JdsMatrix", "diagonal ", k, " has ", length, " entries; expected 0 to ", before,
                 ", no more than the one before");
        }
        before = length;
    }
    require_size("JdsMatrix", "cols", this->cols().size(), start.back());
    require_size("JdsMatrix", "values", this->values().size(), start.back());
    const std::vector<Index> place = places_of(this->order(), shape.rows);
    check_rows(
        "JdsMatrix", shape, [&](Offset row) { return jds_length(start, place[row]); },
        [&, col = this->cols()](Offset row, Offset k) { return col[start[k] + place[row]]; });
}

JdsMatrix JdsMatrix::from(const CsrMatrix& csr) {
    const Offset rows = csr.shape().rows;
    std::vector<Index> order = order_by_length(csr, std::max<Offset>(1, rows));
    const Offset diagonals = rows == 0 ? 0 : csr.row_length(order[0]);
    std::vector<Offset> start(diagonals + 1, 0);
    for (const Index row : order) {  // as histogram of lengths first: how many rows end with diagonal k
        if (csr.row_length(row) > 0) ++start[csr.row_length(row)];
    }
    // A diagonal has as many entries as rows are at least that long.
    for (Offset k = diagonals - 1; k > 0; --k)
        start[k] += start[k + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Index> cols(csr.entries());
    std::vector<float> values(csr.entries());
    for_all(rows, [&](Offset place) {
        const Offset first = csr.row_start()[order[place]];
        for (Offset k = 0; k < csr.row_length(order[place]); ++k) {
            cols[start[k] + place] = csr.cols()[first + k];
            values[start[k] + place] = csr.values()[first + k];
        }
    });
    return {csr.shape(), std::move(order), std::move(start), std::move(cols), std::move(values)};
}

CsrMatrix JdsMatrix::csr() const {
    const std::vector<Index> place = places_of(order(), shape_.rows);
    return collect(
        shape_, [&](Offset row) { return jds_length(diagonal_start(), place[row]); },
        [&](Offset row, Offset k) {
            const Offset i = diagonal_start()[k] + place[row];
            return std::pair(cols()[i], values()[i]);
        });
}

// --- SELL ----------------------------------------------------------------------------------------

namespace {

// Where row r's entries are: slice, lane and the slice's width follow from its place.
struct SellRow {
    Offset first = 0;
    Offset width = 0;
};

SellRow sell_row(std::span<const Offset> slice_start, Offset place) {
    const Offset slice = place / kSliceRows;
    return {slice_start[slice] + place % kSliceRows,
            (slice_start[slice + 1] - slice_start[slice]) / kSliceRows};
}

}  // namespace

SellMatrix::SellMatrix(Shape shape, std::vector<Index> order, std::vector<Offset> slice_start,
                       std::vector<Index> cols, std::vector<float> values)
    : shape_(shape),
      order_(std::move(order)),
      slice_start_(std::move(slice_start)),
      cols_(std::move(cols)),
      values_(std::move(values)) {
    check_shape("SellMatrix", shape);
    if (!this->order().empty()) check_order("SellMatrix", this->order(), shape.rows);
    const auto start = this->slice_start();
    const auto col = this->cols();
    const Offset slices = slices_of(shape.rows);
    require_size("SellMatrix", "slice_start", start.size(), slices + 1);
    course::require(start[0] == 0, "SellMatrix: slice_start[0] is ", start[0], "; expected 0");
    const Offset bad = first_bad(slices, [&](Offset slice) {
        const Offset places = start[slice + 1] - start[slice];
        return places < 0 || places % kSliceRows != 0;
    });
    if (bad < slices) {
        fail("SellMatrix", "slice ", bad, " has ", start[bad + 1] - start[bad],
             " places; expected a multiple of ", kSliceRows);
    }
    require_size("SellMatrix", "cols", col.size(), start.back());
    require_size("SellMatrix", "values", this->values().size(), start.back());

    const std::vector<Index> place = places_of(this->order(), shape.rows);
    const auto width = [&](Offset row) { return sell_row(start, place[row]).width; };
    const auto column = [&](Offset row, Offset k) {
        return col[sell_row(start, place[row]).first + k * kSliceRows];
    };
    check_filling("SellMatrix", shape.rows, width, column);
    check_rows(
        "SellMatrix", shape,
        [&](Offset row) { return filled(width(row), [&](Offset k) { return column(row, k); }); }, column);
    // The last slice's lanes without a row.
    for (Offset lane = slices * kSliceRows - 1; lane >= shape.rows; --lane) {
        const SellRow nothing = sell_row(start, lane);
        for (Offset k = 0; k < nothing.width; ++k)
            if (col[nothing.first + k * kSliceRows] != kNoColumn)
                fail("SellMatrix", "row ", lane, " has an entry; the matrix has ", shape.rows, " rows");
    }
}

SellMatrix SellMatrix::from(const CsrMatrix& csr, Index sigma) {
    std::vector<Index> order = order_for_slices("SellMatrix", csr, sigma);
    const std::vector<Index> widths = slice_widths(csr, order);
    std::vector<Offset> start(widths.size() + 1, 0);
    std::transform_inclusive_scan(widths.begin(), widths.end(), start.begin() + 1, std::plus<>(),
                                  [](Index width) { return Offset{width} * kSliceRows; });
    std::vector<Index> cols(start.back(), kNoColumn);
    std::vector<float> values(start.back(), 0.0f);
    for_all(csr.shape().rows, [&](Offset place) {
        const Index row = row_at(order, place);
        const Offset first = csr.row_start()[row];
        for (Offset k = 0; k < csr.row_length(row); ++k) {
            const Offset to = sell_row(start, place).first + k * kSliceRows;
            cols[to] = csr.cols()[first + k];
            values[to] = csr.values()[first + k];
        }
    });
    return {csr.shape(), std::move(order), std::move(start), std::move(cols), std::move(values)};
}

CsrMatrix SellMatrix::csr() const {
    const std::vector<Index> places = places_of(order(), shape_.rows);
    return collect(
        shape_,
        [&](Offset row) {
            const auto [first, width] = sell_row(slice_start(), places[row]);
            return filled(width, [&, first = first](Offset k) { return cols()[first + k * kSliceRows]; });
        },
        [&](Offset row, Offset k) {
            const Offset i = sell_row(slice_start(), places[row]).first + k * kSliceRows;
            return std::pair(cols()[i], values()[i]);
        });
}

// --- Packed SELL ---------------------------------------------------------------------------------

namespace {

// Calls f(k, column, place) for the entries of one lane, in order; false when an entry comes after
// an empty place.
template <class F>
bool for_packed_row(const PackedSlice& slice, const std::uint8_t* codes, Offset lane, F f) {
    const std::uint8_t* const own = codes + std::size_t{slice.first_code} * 32;
    const std::uint32_t no_code = largest_code(slice.code_bytes());
    Offset col = slice.base;
    bool ended = false;
    for (std::uint32_t k = 0; k < slice.width(); ++k) {
        const std::size_t place = PackedSellMatrix::place(slice.width(), k, static_cast<std::uint32_t>(lane));
        const std::uint32_t code = read_code(own, slice.code_bytes(), place);
        if (ended && code != no_code) return false;
        ended = ended || code == no_code;
        if (ended) continue;
        col += code;
        f(k, col, place);
    }
    return true;
}

Offset packed_length(const PackedSlice& slice, const std::uint8_t* codes, Offset lane) {
    Offset length = 0;
    for_packed_row(slice, codes, lane, [&](auto, auto, auto) { ++length; });
    return length;
}

}  // namespace

PackedSellMatrix::PackedSellMatrix(Shape shape, std::vector<Index> order, std::vector<PackedSlice> slices,
                                   std::vector<std::uint8_t> codes, std::vector<float> values)
    : shape_(shape),
      order_(std::move(order)),
      slices_(std::move(slices)),
      codes_(std::move(codes)),
      values_(std::move(values)) {
    constexpr const char* kName = "PackedSellMatrix";
    check_shape(kName, shape);
    if (!this->order().empty()) check_order(kName, this->order(), shape.rows);
    const auto slice = this->slices();
    const Offset count = slices_of(shape.rows);
    require_size(kName, "slices", slice.size(), count);
    Offset value_groups = 0;
    Offset code_groups = 0;
    for (Offset s = 0; s < count; ++s) {
        const auto name = [&] { return "slice " + std::to_string(s); };
        if (slice[s].first_value != value_groups || slice[s].first_code != code_groups) {
            fail(kName, name(), " begins with value ", slice[s].first_value, " and code ",
                 slice[s].first_code, "; expected ", value_groups, " and ", code_groups,
                 ", where the one before ends");
        }
        if (slice[s].code_bytes() > 4) fail(kName, name(), " has codes of 8 bytes; expected 1, 2 or 4");
        if (slice[s].base < 0) fail(kName, name(), " has base ", slice[s].base, "; expected 0 or more");
        value_groups += slice[s].width();
        code_groups += Offset{slice[s].width()} * slice[s].code_bytes();
    }
    require_size(kName, "values", this->values().size(), 32 * value_groups);
    require_size(kName, "codes", this->codes().size(), 32 * code_groups);
    const Offset lanes = count * kSliceRows;
    const Offset bad = first_bad(lanes, [&](Offset lane) {
        bool inside = true;
        const bool whole = for_packed_row(
            slice[lane / kSliceRows], this->codes().data(), lane % kSliceRows,
            [&](auto, Offset col, auto) { inside = inside && lane < shape.rows && col < shape.cols; });
        return !inside || !whole;
    });
    if (bad < lanes) {
        fail(kName, "row ", bad < shape.rows ? row_at(this->order(), bad) : bad, " has an entry outside of ",
             shape, ", or behind a place that is empty");
    }
}

PackedSellMatrix PackedSellMatrix::from(const CsrMatrix& csr, Index sigma) {
    const auto start = csr.row_start();
    const auto col = csr.cols();
    const Offset rows = csr.shape().rows;
    std::vector<Index> order = order_for_slices("PackedSellMatrix", csr, sigma);
    const std::vector<Index> widths = slice_widths(csr, order);
    std::vector<PackedSlice> slices(widths.size());
    const auto for_slice_rows = [&](Offset s, auto f) {
        for (Offset place = s * kSliceRows; place < std::min(rows, (s + 1) * kSliceRows); ++place)
            f(place % kSliceRows, row_at(order, place));
    };

    // How large are a slice's differences?
    for_all(static_cast<Offset>(slices.size()), [&](Offset s) {
        Index base = csr.shape().cols;
        for_slice_rows(s, [&](Offset, Index row) {
            if (csr.row_length(row) > 0) base = std::min(base, col[start[row]]);
        });
        std::uint32_t largest = 0;
        for_slice_rows(s, [&](Offset, Index row) {
            Index before = base;
            for (Offset i = start[row]; i < start[row + 1]; ++i) {
                largest = std::max(largest, static_cast<std::uint32_t>(col[i] - before));
                before = col[i];
            }
        });
        const std::uint32_t log_bytes = largest < largest_code(1) ? 0 : largest < largest_code(2) ? 1 : 2;
        slices[s].base = widths[s] == 0 ? 0 : base;
        slices[s].width_and_bytes = 4 * static_cast<std::uint32_t>(widths[s]) + log_bytes;
    });
    for (std::size_t s = 0; s < widths.size(); ++s) {
        if (static_cast<std::uint32_t>(widths[s]) <= PackedSlice::kMostWidth) continue;
        for_slice_rows(static_cast<Offset>(s), [&](Offset, Index row) {
            if (csr.row_length(row) < widths[s]) return;
            fail("PackedSellMatrix", "row ", row, " has ", widths[s], " entries; expected at most ",
                 PackedSlice::kMostWidth);
        });
    }

    // Where does it stand?
    Offset value_groups = 0;
    Offset code_groups = 0;
    for (std::size_t s = 0; s < slices.size(); ++s) {
        slices[s].first_value = static_cast<std::uint32_t>(value_groups);
        slices[s].first_code = static_cast<std::uint32_t>(code_groups);
        value_groups += slices[s].width();
        code_groups += Offset{slices[s].width()} * slices[s].code_bytes();
    }
    if (code_groups > UINT32_MAX || value_groups > UINT32_MAX) {
        fail("PackedSellMatrix", "it would have ", 32 * value_groups, " places in ", 32 * code_groups,
             " bytes of codes; expected at most ", 32 * Offset{UINT32_MAX}, " of either");
    }

    std::vector<float> values(32 * value_groups, 0.0f);
    std::vector<std::uint8_t> codes(32 * code_groups, 0xff);
    for_all(static_cast<Offset>(slices.size()), [&](Offset s) {
        const PackedSlice& slice = slices[s];
        float* const own_values = values.data() + std::size_t{slice.first_value} * 32;
        std::uint8_t* const own_codes = codes.data() + std::size_t{slice.first_code} * 32;
        for_slice_rows(s, [&](Offset lane, Index row) {
            Index before = slice.base;
            for (Offset i = start[row]; i < start[row + 1]; ++i) {
                const std::size_t to = place(slice.width(), static_cast<std::uint32_t>(i - start[row]),
                                             static_cast<std::uint32_t>(lane));
                write_code(own_codes, slice.code_bytes(), to, static_cast<std::uint32_t>(col[i] - before));
                own_values[to] = csr.values()[i];
                before = col[i];
            }
        });
    });
    return {csr.shape(), std::move(order), std::move(slices), std::move(codes), std::move(values)};
}

CsrMatrix PackedSellMatrix::csr() const {
    const std::vector<Index> places = places_of(order(), shape_.rows);
    std::vector<Offset> start(static_cast<std::size_t>(shape_.rows) + 1, 0);
    const auto slice_of = [&](Offset row) -> const PackedSlice& {
        return slices()[places[row] / kSliceRows];
    };
    for_all(shape_.rows, [&](Offset row) {
        start[row + 1] = packed_length(slice_of(row), codes().data(), places[row] % kSliceRows);
    });
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Index> cols(start.back());
    std::vector<float> csr_values(start.back());
    for_all(shape_.rows, [&](Offset row) {
        const PackedSlice& slice = slice_of(row);
        for_packed_row(slice, codes().data(), places[row] % kSliceRows,
                       [&](std::uint32_t k, Offset col, std::size_t place) {
                           cols[start[row] + k] = static_cast<Index>(col);
                           csr_values[start[row] + k] = values()[std::size_t{slice.first_value} * 32 + place];
                       });
    });
    return {shape_, std::move(start), std::move(cols), std::move(csr_values)};
}

}  // namespace day35
