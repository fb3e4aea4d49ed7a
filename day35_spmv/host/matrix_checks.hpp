// What the constructors of all formats check: shapes, sizes, and rows of ascending columns. Loops
// run on all cores.
#pragma once

#include <cstddef>
#include <string>

#include "common/check/require.hpp"
#include "host/csr_matrix.hpp"

namespace day35 {

// For a message whose parts exist only when the check fails.
template <class... Parts>
void fail(const char* format, const Parts&... parts) {
    course::require(false, format, ": ", parts...);
}

inline void require_size(const char* format, const char* array, std::size_t size, Offset expected) {
    course::require(static_cast<Offset>(size) == expected, format, ": ", array, " has ", size,
                    " elements; expected ", expected);
}

inline void check_shape(const char* format, Shape shape) {
    course::require(shape.rows >= 0 && shape.cols >= 0, format, ": shape is ", shape,
                    "; expected 0 or more of each");
}

// Shorter loops take less time than waking the other cores.
inline constexpr Offset kWorthSharing = 1 << 12;

// Calls f(i) for all i of [0, count), on all cores.
template <class F>
void for_all(Offset count, F f) {
#pragma omp parallel for schedule(static) if (count >= kWorthSharing)
    for (Offset i = 0; i < count; ++i)
        f(i);
}

// The least i of [0, count) with bad(i), or `count`. All cores search, and the first mistake is
// reported.
template <class Bad>
Offset first_bad(Offset count, Bad bad) {
    Offset first = count;
#pragma omp parallel for schedule(static) reduction(min : first) if (count >= kWorthSharing)
    for (Offset i = 0; i < count; ++i) {
        if (i < first && bad(i)) first = i;
    }
    return first;
}

// What is wrong with a row whose entry k has column column(k), `length` of them; empty if nothing
// is.
template <class Column>
std::string fault_of_row(Offset row, Index cols, Offset length, Column column) {
    for (Offset k = 0; k < length; ++k) {
        const Offset col = column(k);
        if (col < 0 || col >= cols) {
            return "row " + std::to_string(row) + " has an entry in column " + std::to_string(col) +
                   "; the matrix has " + std::to_string(cols) + " columns";
        }
        if (k > 0 && col < column(k - 1)) {
            return "row " + std::to_string(row) + " has column " + std::to_string(col) + " after column " +
                   std::to_string(column(k - 1)) + "; expected ascending columns";
        }
    }
    return "";
}

// Checks all rows: row r's entry k has column column(r, k), of length(r).
template <class Length, class Column>
void check_rows(const char* format, Shape shape, Length length, Column column) {
    const auto fault = [&](Offset row) {
        return fault_of_row(row, shape.cols, length(row), [&](Offset k) { return column(row, k); });
    };
    const Offset bad = first_bad(shape.rows, [&](Offset row) {
        const Offset entries = length(row);
        Offset before = 0;
        for (Offset k = 0; k < entries; ++k) {
            const Offset col = column(row, k);
            if (col < before || col >= shape.cols) return true;
            before = col;
        }
        return false;
    });
    if (bad != shape.rows) fail(format, fault(bad));
}

}  // namespace day35
