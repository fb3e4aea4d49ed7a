// Awkward matrices, for the tests of formats and of kernels.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/device/random.hpp"
#include "host/matrices.hpp"

namespace day35 {

// Row r has the columns 0, 1, ... lengths[r] - 1.
inline CsrMatrix with_lengths(const std::vector<Index>& lengths) {
    std::vector<std::vector<Index>> rows;
    Index cols = 1;
    for (const Index length : lengths) {
        rows.emplace_back(length);
        std::iota(rows.back().begin(), rows.back().end(), 0);
        cols = std::max(cols, length);
    }
    return from_rows(cols, rows);
}

// One row of `dense` entries at `place`, among rows that are empty.
inline CsrMatrix one_dense_row(Index rows, Index place, Index dense) {
    std::vector<Index> lengths(rows, 0);
    lengths[place] = dense;
    return with_lengths(lengths);
}

// Rows of any length up to `longest`, most of them short, with columns anywhere.
inline CsrMatrix random_matrix(Shape shape, Index longest, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<std::vector<Index>> rows(shape.rows);
    for (std::vector<Index>& row : rows) {
        const auto most = random.below(4) == 0 ? longest : std::min<Index>(longest, 5);
        row.resize(shape.cols == 0 ? 0 : random.below(static_cast<std::uint32_t>(most) + 1));
        for (Index& col : row)
            col = static_cast<Index>(random.below(static_cast<std::uint32_t>(shape.cols)));
    }
    return from_rows(shape.cols, rows);
}

inline std::vector<std::pair<std::string, CsrMatrix>> awkward_matrices() {
    std::vector<Index> rising(71);
    std::iota(rising.begin(), rising.end(), 0);
    std::vector<std::pair<std::string, CsrMatrix>> list;
    const auto add = [&](const std::string& name, const CsrMatrix& csr) { list.emplace_back(name, csr); };
    add("0 x 0", from_rows(0, {}));
    add("0 rows", from_rows(7, {}));
    add("0 columns", from_rows(0, std::vector<std::vector<Index>>(70)));
    add("no entries", from_rows(9, std::vector<std::vector<Index>>(333)));
    add("1 x 1", from_rows(1, {{0}}));
    add("a row", from_rows(5000, {{0, 7, 7, 4999}}));
    add("a column", from_rows(1, std::vector<std::vector<Index>>(1000, {0})));
    for (const Index rows : {31, 32, 33, 127, 128, 129, 257})
        add("diagonal " + std::to_string(rows), banded(rows, 1));
    add("lengths 0 to 70", with_lengths(rising));
    std::reverse(rising.begin(), rising.end());
    add("lengths 70 to 0", with_lengths(rising));
    add("all duplicates", from_rows(10, std::vector<std::vector<Index>>(40, std::vector<Index>(9, 4))));
    add("first row dense", one_dense_row(100, 0, 3000));
    add("last row dense", one_dense_row(100, 99, 3000));
    add("band", banded(1500, 27));
    add("laplacian", laplacian_2d(33));
    add("blocks", node_blocks(4, 3));
    add("wide", uniform_random({40, 100000}, 37));
    add("tall", uniform_random({9000, 3}, 2));
    add("power law", power_law({3001, 40000}, 7));
    // Steps between columns at the edges of what one and two bytes hold.
    for (const Index step : {253, 254, 255, 256, 65533, 65534, 65535, 65536}) {
        add("step " + std::to_string(step),
            from_rows(3 * step + 2, {{0, step}, {step, 2 * step, 3 * step}, {1}}));
        add("lane step " + std::to_string(step), from_rows(step + 1, {{0}, {step}}));
    }
    return list;
}

}  // namespace day35
