#include <algorithm>
#include <cmath>

#include "beyond/spmspv.hpp"
#include "host/formats.hpp"

namespace day35 {

SparseReference multiply_on_cpu(const CsrMatrix& csr, const SparseVector& x) {
    constexpr double kExact = 1 << 24;  // up to here float has every whole number
    const CscMatrix csc = to_csc(csr);
    const auto rows = static_cast<std::size_t>(csr.shape().rows);
    SparseReference result;
    result.y.resize(rows);
    result.magnitude.resize(rows);
    result.work = {.x_entries = static_cast<Offset>(x.cols.size()), .rows = csr.shape().rows};
    std::vector<Offset> met(rows);
    std::vector<bool> whole(rows, true);
    for (std::size_t k = 0; k < x.cols.size(); ++k) {
        for (Offset i = csc.col_start[x.cols[k]]; i < csc.col_start[x.cols[k] + 1]; ++i) {
            const Index row = csc.rows[i];
            const double product = static_cast<double>(csc.values[i]) * static_cast<double>(x.values[k]);
            result.y[row] += product;
            result.magnitude[row] += std::abs(product);
            whole[row] = whole[row] && product == std::trunc(product);
            ++met[row];
            ++result.work.met_entries;
        }
    }
    for (std::size_t row = 0; row < rows; ++row) {
        const bool exact = whole[row] && result.magnitude[row] <= kExact;
        result.magnitude[row] *= exact ? 0 : 0.5 * static_cast<double>(met[row] + 1);
        if (met[row] > 0) result.met_rows.push_back(static_cast<Index>(row));
    }
    result.work.met_rows = static_cast<Offset>(result.met_rows.size());
    return result;
}

}  // namespace day35
