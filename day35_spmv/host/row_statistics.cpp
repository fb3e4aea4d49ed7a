#include "host/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "host/sparse_formats.hpp"

namespace day35 {
namespace {

// Places that slices of 32 rows have, when their rows have these lengths.
Offset places_in_slices(std::span<const Index> lengths) {
    Offset places = 0;
    for (std::size_t first = 0; first < lengths.size(); first += kSliceRows) {
        const auto slice = lengths.subspan(first, std::min<std::size_t>(kSliceRows, lengths.size() - first));
        places += Offset{kSliceRows} * *std::max_element(slice.begin(), slice.end());
    }
    return places;
}

}  // namespace

RowStatistics row_statistics(const CsrMatrix& csr) {
    RowStatistics statistics{.shape = csr.shape(), .entries = csr.entries()};
    const Index rows = csr.shape().rows;
    if (rows == 0 || csr.entries() == 0) {
        statistics.empty = rows;
        return statistics;
    }
    const auto entries = static_cast<double>(csr.entries());
    statistics.mean = entries / rows;
    std::vector<Index> lengths(rows);
    double squares = 0;
    for (Index row = 0; row < rows; ++row) {
        lengths[row] = csr.row_length(row);
        statistics.longest = std::max(statistics.longest, lengths[row]);
        statistics.empty += lengths[row] == 0;
        squares += (lengths[row] - statistics.mean) * (lengths[row] - statistics.mean);
    }
    statistics.spread = std::sqrt(squares / rows) / statistics.mean;
    statistics.ell_filling = static_cast<double>(rows) * statistics.longest / entries;
    statistics.sell_filling = static_cast<double>(places_in_slices(lengths)) / entries;
    for (Offset first = 0; first < rows; first += kPackedSigma) {
        std::sort(lengths.begin() + first, lengths.begin() + std::min<Offset>(rows, first + kPackedSigma),
                  std::greater<>());
    }
    statistics.sorted_filling = static_cast<double>(places_in_slices(lengths)) / entries;
    return statistics;
}

}  // namespace day35
