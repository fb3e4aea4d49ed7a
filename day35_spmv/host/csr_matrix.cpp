#include "host/csr_matrix.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "common/check/require.hpp"

namespace day35 {
namespace {

constexpr Index kMostInRow = std::numeric_limits<Index>::max();

void require_size(const char* array, std::size_t size, Offset expected) {
    course::require(static_cast<Offset>(size) == expected, "CsrMatrix: ", array, " has ", size,
                    " elements; expected ", expected);
}

void check_offsets(Shape shape, std::span<const Offset> start) {
    require_size("row_start", start.size(), Offset{shape.rows} + 1);
    course::require(start[0] == 0, "CsrMatrix: row_start[0] is ", start[0], "; expected 0");
    for (Index row = 0; row < shape.rows; ++row) {
        const Offset length = start[row + 1] - start[row];
        course::require(length >= 0, "CsrMatrix: row ", row, " ends before it begins, at ", start[row + 1],
                        " and ", start[row]);
        course::require(length <= kMostInRow, "CsrMatrix: row ", row, " has ", length,
                        " entries; expected at most ", kMostInRow);
    }
}

bool is_ascending(std::span<const Index> cols, Index end) {
    Index before = 0;
    for (const Index col : cols) {
        if (col < before || col >= end) return false;
        before = col;
    }
    return true;
}

// All cores search; the first row that is wrong is reported.
void check_columns(Shape shape, std::span<const Offset> start, std::span<const Index> cols) {
    const auto row_cols = [&](Offset row) { return cols.subspan(start[row], start[row + 1] - start[row]); };
    Offset first_bad = shape.rows;
#pragma omp parallel for schedule(static) reduction(min : first_bad)
    for (Offset row = 0; row < shape.rows; ++row)
        if (row < first_bad && !is_ascending(row_cols(row), shape.cols)) first_bad = row;
    if (first_bad == shape.rows) return;
    Index before = 0;
    for (const Index col : row_cols(first_bad)) {
        course::require(col >= 0 && col < shape.cols, "CsrMatrix: row ", first_bad,
                        " has an entry in column ", col, "; the matrix has ", shape.cols, " columns");
        course::require(col >= before, "CsrMatrix: row ", first_bad, " has column ", col, " after column ",
                        before, "; expected ascending columns");
        before = col;
    }
}

}  // namespace

CsrMatrix::CsrMatrix(Shape shape, std::vector<Offset> row_start, std::vector<Index> cols,
                     std::vector<float> values)
    : shape_(shape), row_start_(std::move(row_start)), cols_(std::move(cols)), values_(std::move(values)) {
    course::require(shape.rows >= 0 && shape.cols >= 0, "CsrMatrix: shape is ", shape,
                    "; expected 0 or more of each");
    const auto start = this->row_start();
    check_offsets(shape, start);
    require_size("cols", this->cols().size(), start.back());
    require_size("values", this->values().size(), start.back());
    check_columns(shape, start, this->cols());
}

CsrMatrix CsrMatrix::from_entries(Shape shape, std::span<const Index> rows, std::span<const Index> cols,
                                  std::span<const float> values) {
    require_size("cols", cols.size(), static_cast<Offset>(rows.size()));
    require_size("values", values.size(), static_cast<Offset>(rows.size()));
    std::vector<Offset> order(rows.size());
    std::iota(order.begin(), order.end(), Offset{0});
    std::stable_sort(order.begin(), order.end(), [&](Offset a, Offset b) {
        return rows[a] != rows[b] ? rows[a] < rows[b] : cols[a] < cols[b];
    });
    std::vector<Offset> start(static_cast<std::size_t>(shape.rows) + 1, 0);
    std::vector<Index> sorted_cols;
    std::vector<float> sorted_values;
    for (const Offset i : order) {
        course::require(rows[i] >= 0 && rows[i] < shape.rows, "CsrMatrix: entry ", i, " is in row ", rows[i],
                        "; the matrix has ", shape.rows, " rows");
        ++start[rows[i] + 1];
        sorted_cols.push_back(cols[i]);
        sorted_values.push_back(values[i]);
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    return {shape, std::move(start), std::move(sorted_cols), std::move(sorted_values)};
}

}  // namespace day35
