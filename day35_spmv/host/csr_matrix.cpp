#include "host/csr_matrix.hpp"

#include <limits>

#include "host/matrix_checks.hpp"

namespace day35 {

CsrMatrix::CsrMatrix(Shape shape, std::vector<Offset> row_start, std::vector<Index> cols,
                     std::vector<float> values)
    : shape_(shape), row_start_(std::move(row_start)), cols_(std::move(cols)), values_(std::move(values)) {
    check_shape("CsrMatrix", shape);
    const auto start = this->row_start();
    require_size("CsrMatrix", "row_start", start.size(), Offset{shape.rows} + 1);
    course::require(start[0] == 0, "CsrMatrix: row_start[0] is ", start[0], "; expected 0");
    const Offset bad = first_bad(shape.rows, [&](Offset row) { return start[row + 1] < start[row]; });
    if (bad < shape.rows)
        fail("CsrMatrix", "row ", bad, " ends before it begins, at ", start[bad + 1], " and ", start[bad]);
    constexpr Offset kMostInRow = std::numeric_limits<Index>::max();
    const Offset too_long =
        first_bad(shape.rows, [&](Offset row) { return start[row + 1] - start[row] > kMostInRow; });
    if (too_long < shape.rows) {
        fail("CsrMatrix", "row ", too_long, " has ", start[too_long + 1] - start[too_long],
             " entries; expected at most ", kMostInRow);
    }
    require_size("CsrMatrix", "cols", this->cols().size(), start.back());
    require_size("CsrMatrix", "values", this->values().size(), start.back());
    check_rows(
        "CsrMatrix", shape, [&](Offset row) { return start[row + 1] - start[row]; },
        [&, col = this->cols()](Offset row, Offset k) { return col[start[row] + k]; });
}

Index CsrMatrix::row_length(Index row) const {
    return static_cast<Index>(row_start()[row + 1] - row_start()[row]);
}

}  // namespace day35
