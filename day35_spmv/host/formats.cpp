#include "host/formats.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "common/check/require.hpp"

namespace day35 {
namespace {

// Calls f(i) for all i of [0, count), on all cores unless waking them would take longer.
template <class F>
void for_all(Offset count, F f) {
#pragma omp parallel for schedule(static) if (count >= 4096)
    for (Offset i = 0; i < count; ++i)
        f(i);
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

std::vector<Index> order_for_slices(const char* format, const CsrMatrix& csr, Index sigma) {
    course::require(sigma >= 1, format, ": sigma is ", sigma, "; expected 1 or more");
    return sigma == 1 ? std::vector<Index>() : order_by_length(csr, sigma);
}

Index row_at(std::span<const Index> order, Offset place) {
    return order.empty() ? static_cast<Index>(place) : order[place];
}

// The longest row of each slice.
std::vector<Index> slice_widths(const CsrMatrix& csr, std::span<const Index> order) {
    const Offset rows = csr.shape().rows;
    std::vector<Index> widths((rows + kSliceRows - 1) / kSliceRows, 0);
    for_all(static_cast<Offset>(widths.size()), [&](Offset slice) {
        const Offset end = std::min(rows, (slice + 1) * kSliceRows);
        for (Offset place = slice * kSliceRows; place < end; ++place)
            widths[slice] = std::max(widths[slice], csr.row_length(row_at(order, place)));
    });
    return widths;
}

}  // namespace

CooMatrix to_coo(const CsrMatrix& csr) {
    const auto start = csr.row_start();
    std::vector<Index> rows(csr.entries());
    for_all(csr.shape().rows, [&](Offset row) {
        std::fill(rows.begin() + start[row], rows.begin() + start[row + 1], static_cast<Index>(row));
    });
    return {
        std::move(rows), {csr.cols().begin(), csr.cols().end()}, {csr.values().begin(), csr.values().end()}};
}

CscMatrix to_csc(const CsrMatrix& csr) {
    const auto start = csr.row_start();
    CscMatrix csc{.col_start = std::vector<Offset>(static_cast<std::size_t>(csr.shape().cols) + 1, 0),
                  .rows = std::vector<Index>(csr.entries()),
                  .values = std::vector<float>(csr.entries())};
    for (const Index col : csr.cols())
        ++csc.col_start[col + 1];
    std::partial_sum(csc.col_start.begin(), csc.col_start.end(), csc.col_start.begin());
    std::vector<Offset> next(csc.col_start.begin(), csc.col_start.end() - 1);
    for (Index row = 0; row < csr.shape().rows; ++row) {
        for (Offset i = start[row]; i < start[row + 1]; ++i) {
            const Offset place = next[csr.cols()[i]]++;
            csc.rows[place] = row;
            csc.values[place] = csr.values()[i];
        }
    }
    return csc;
}

EllMatrix to_ell(const CsrMatrix& csr) {
    Index width = 0;
    for (Index row = 0; row < csr.shape().rows; ++row)
        width = std::max(width, csr.row_length(row));
    return to_hybrid(csr, width).ell;
}

HybridMatrix to_hybrid(const CsrMatrix& csr) {
    std::vector<Index> lengths(csr.shape().rows);
    for_all(csr.shape().rows, [&](Offset row) { lengths[row] = csr.row_length(static_cast<Index>(row)); });
    const auto third = lengths.begin() + static_cast<Offset>(lengths.size()) / 3;
    if (third == lengths.end()) return to_hybrid(csr, 0);
    std::nth_element(lengths.begin(), third, lengths.end(), std::greater<>());
    return to_hybrid(csr, *third);
}

HybridMatrix to_hybrid(const CsrMatrix& csr, Index width) {
    course::require(width >= 0, "to_hybrid: width is ", width, "; expected 0 or more");
    const Offset rows = csr.shape().rows;
    const auto start = csr.row_start();
    HybridMatrix hybrid{.ell = {csr.shape(), width, std::vector<Index>(rows * width, kNoColumn),
                                std::vector<float>(rows * width, 0.0f)},
                        .coo = {}};
    for_all(rows, [&](Offset row) {
        for (Offset k = 0; k < std::min<Offset>(width, start[row + 1] - start[row]); ++k) {
            hybrid.ell.cols[k * rows + row] = csr.cols()[start[row] + k];
            hybrid.ell.values[k * rows + row] = csr.values()[start[row] + k];
        }
    });
    for (Offset row = 0; row < rows; ++row) {
        for (Offset i = start[row] + width; i < start[row + 1]; ++i) {
            hybrid.coo.rows.push_back(static_cast<Index>(row));
            hybrid.coo.cols.push_back(csr.cols()[i]);
            hybrid.coo.values.push_back(csr.values()[i]);
        }
    }
    return hybrid;
}

JdsMatrix to_jds(const CsrMatrix& csr) {
    const Offset rows = csr.shape().rows;
    std::vector<Index> order = order_by_length(csr, std::max<Offset>(1, rows));
    const Offset diagonals = rows == 0 ? 0 : csr.row_length(order[0]);
    // First the number of rows that end with diagonal k; from it, how many reach diagonal k, which
    // are its entries; from these, where it begins.
    std::vector<Offset> start(diagonals + 1, 0);
    for (const Index row : order)
        if (csr.row_length(row) > 0) ++start[csr.row_length(row)];
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
    return {std::move(order), std::move(start), std::move(cols), std::move(values)};
}

SellMatrix to_sell(const CsrMatrix& csr, Index sigma) {
    std::vector<Index> order = order_for_slices("to_sell", csr, sigma);
    const std::vector<Index> widths = slice_widths(csr, order);
    std::vector<Offset> start(widths.size() + 1, 0);
    std::transform_inclusive_scan(widths.begin(), widths.end(), start.begin() + 1, std::plus<>(),
                                  [](Index width) { return Offset{width} * kSliceRows; });
    std::vector<Index> cols(start.back(), kNoColumn);
    std::vector<float> values(start.back(), 0.0f);
    for_all(csr.shape().rows, [&](Offset place) {
        const Index row = row_at(order, place);
        const Offset first = csr.row_start()[row];
        const Offset to = start[place / kSliceRows] + place % kSliceRows;
        for (Offset k = 0; k < csr.row_length(row); ++k) {
            cols[to + k * kSliceRows] = csr.cols()[first + k];
            values[to + k * kSliceRows] = csr.values()[first + k];
        }
    });
    return {std::move(order), std::move(start), std::move(cols), std::move(values)};
}

// --- Packed SELL ---------------------------------------------------------------------------------

PackedSellMatrix to_packed_sell(const CsrMatrix& csr, Index sigma) {
    const auto start = csr.row_start();
    const auto cols = csr.cols();
    const Offset rows = csr.shape().rows;
    PackedSellMatrix packed;
    packed.order = order_for_slices("to_packed_sell", csr, sigma);
    const std::vector<Index> widths = slice_widths(csr, packed.order);
    packed.slices.resize(widths.size());
    const auto for_slice_rows = [&](Offset s, auto f) {
        for (Offset place = s * kSliceRows; place < std::min(rows, (s + 1) * kSliceRows); ++place)
            f(place % kSliceRows, row_at(packed.order, place));
    };

    // The base of each slice, and the bytes that its largest difference needs.
    for_all(static_cast<Offset>(widths.size()), [&](Offset s) {
        Index base = csr.shape().cols;
        for_slice_rows(s, [&](Offset, Index row) {
            if (csr.row_length(row) > 0) base = std::min(base, cols[start[row]]);
        });
        Index largest = 0;
        for_slice_rows(s, [&](Offset, Index row) {
            Index before = base;
            for (Offset i = start[row]; i < start[row + 1]; ++i) {
                largest = std::max(largest, cols[i] - before);
                before = cols[i];
            }
        });
        const std::uint32_t log_bytes = largest < 0xff ? 0 : largest < 0xffff ? 1 : 2;
        packed.slices[s].base = widths[s] == 0 ? 0 : base;
        packed.slices[s].width_and_bytes = 4 * static_cast<std::uint32_t>(widths[s]) + log_bytes;
    });

    // Where each slice begins.
    Offset value_groups = 0;
    Offset code_groups = 0;
    for (Offset s = 0; s < static_cast<Offset>(widths.size()); ++s) {
        for_slice_rows(s, [&](Offset, Index row) {
            course::require(static_cast<std::uint32_t>(csr.row_length(row)) <= PackedSlice::kMostWidth,
                            "to_packed_sell: row ", row, " has ", csr.row_length(row),
                            " entries; expected at most ", PackedSlice::kMostWidth);
        });
        PackedSlice& slice = packed.slices[s];
        slice.first_value = static_cast<std::uint32_t>(value_groups);
        slice.first_code = static_cast<std::uint32_t>(code_groups);
        value_groups += slice.width();
        code_groups += Offset{slice.width()} * slice.code_bytes();
    }
    course::require(code_groups <= UINT32_MAX && value_groups <= UINT32_MAX, "to_packed_sell: it would have ",
                    32 * value_groups, " places in ", 32 * code_groups, " bytes of codes; expected at most ",
                    32 * Offset{UINT32_MAX}, " of either");

    packed.values.assign(32 * value_groups, 0.0f);
    packed.codes.assign(32 * code_groups, 0xff);
    for_all(static_cast<Offset>(widths.size()), [&](Offset s) {
        const PackedSlice& slice = packed.slices[s];
        float* const values = packed.values.data() + std::size_t{slice.first_value} * 32;
        std::uint8_t* const codes = packed.codes.data() + std::size_t{slice.first_code} * 32;
        for_slice_rows(s, [&](Offset lane, Index row) {
            Index before = slice.base;
            for (Offset i = start[row]; i < start[row + 1]; ++i) {
                const std::size_t place = packed_place(slice.width(), i - start[row], lane);
                const Index code = cols[i] - before;
                // The first bytes of a little-endian number, as every GPU and its host are.
                std::memcpy(codes + place * slice.code_bytes(), &code, slice.code_bytes());
                values[place] = csr.values()[i];
                before = cols[i];
            }
        });
    });
    return packed;
}

// --- Statistics ----------------------------------------------------------------------------------

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
