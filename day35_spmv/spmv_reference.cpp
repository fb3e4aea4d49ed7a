#include <algorithm>
#include <cmath>

#include "spmv.hpp"

namespace day35 {
namespace {

constexpr Index kWorthSharing = 1 << 12;  // rows, among all cores
constexpr double kExact = 1 << 24;        // up to here float has every whole number

}  // namespace

Reference multiply_on_cpu(const CsrMatrix& csr, std::span<const float> x) {
    const auto start = csr.row_start();
    Reference result;
    result.y.resize(csr.shape().rows);
    result.magnitude.resize(csr.shape().rows);
#pragma omp parallel for schedule(dynamic, 1024) if (csr.shape().rows >= kWorthSharing)
    for (Index row = 0; row < csr.shape().rows; ++row) {
        double sum = 0;
        double magnitude = 0;
        bool whole = true;
        for (Offset i = start[row]; i < start[row + 1]; ++i) {
            const double product =
                static_cast<double>(csr.values()[i]) * static_cast<double>(x[csr.cols()[i]]);
            sum += product;
            magnitude += std::abs(product);
            whole = whole && product == std::trunc(product);
        }
        result.y[row] = sum;
        const bool exact = whole && magnitude <= kExact;
        result.magnitude[row] = exact ? 0 : magnitude * std::sqrt(csr.row_length(row));
    }
    return result;
}

}  // namespace day35
