#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/check/require.hpp"
#include "common/device/random.hpp"
#include "host/matrices.hpp"

namespace day35 {
namespace {

constexpr std::uint64_t kSeed = 35;
constexpr Index kMostIndices = std::numeric_limits<Index>::max();
constexpr Index kWorthSharing = 1 << 12;  // rows, among all cores

// Numbers of a row's own, so that rows can be made on all cores.
course::Random random_of_row(Index row) {
    return course::Random(kSeed, (static_cast<std::uint64_t>(row) + 1) << 24);
}

void require_shape(const char* name, Shape shape, bool has_entries) {
    course::require(shape.rows >= 0 && shape.cols >= 0, name, ": shape is ", shape,
                    "; expected 0 or more of each");
    course::require(shape.cols > 0 || !has_entries, name, ": shape is ", shape,
                    "; expected columns for the entries to be in");
}

// A matrix whose row r has length(r) columns, written by fill(r, first, random), and random values;
// columns are sorted here.
template <class Length, class Fill>
CsrMatrix make(Shape shape, Length length, Fill fill) {
    std::vector<Offset> start(static_cast<std::size_t>(shape.rows) + 1, 0);
#pragma omp parallel for if (shape.rows >= kWorthSharing)
    for (Index row = 0; row < shape.rows; ++row)
        start[row + 1] = length(row);
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<Index> cols(start.back());
    std::vector<float> values(start.back());
#pragma omp parallel for schedule(dynamic, 256) if (shape.rows >= kWorthSharing)
    for (Index row = 0; row < shape.rows; ++row) {
        course::Random random = random_of_row(row);
        fill(row, cols.begin() + start[row], random);
        std::sort(cols.begin() + start[row], cols.begin() + start[row + 1]);
        for (Offset i = start[row]; i < start[row + 1]; ++i)
            values[i] = random.uniform(-1, 1);
    }
    return {shape, std::move(start), std::move(cols), std::move(values)};
}

CsrMatrix with_columns_anywhere(Shape shape, const std::vector<Index>& lengths) {
    return make(
        shape, [&](Index row) { return lengths[row]; },
        [&](Index row, auto col, course::Random& random) {
            for (Index k = 0; k < lengths[row]; ++k)
                *col++ = static_cast<Index>(random.below(static_cast<std::uint32_t>(shape.cols)));
        });
}

}  // namespace

CsrMatrix banded(Index rows, Index band) {
    course::require(rows >= 0, "banded: rows is ", rows, "; expected 0 or more");
    course::require(band >= 1 && band % 2 == 1, "banded: band is ", band, "; expected 1, 3, 5, ...");
    const auto first = [&](Index row) { return std::max(0, row - band / 2); };
    const auto length = [&](Index row) {
        const Offset last = std::min<Offset>(rows - 1, Offset{row} + band / 2);
        return static_cast<Index>(last) - first(row) + 1;
    };
    return make({rows, rows}, length,
                [&](Index row, auto col, course::Random&) { std::iota(col, col + length(row), first(row)); });
}

CsrMatrix uniform_random(Shape shape, Index per_row) {
    require_shape("uniform_random", shape, per_row > 0);
    course::require(per_row >= 0, "uniform_random: per_row is ", per_row, "; expected 0 or more");
    return with_columns_anywhere(shape, std::vector<Index>(shape.rows, per_row));
}

// With u uniform in (0, 1], P(m u^(-3/4) > t) = (m / t)^(4/3), and the mean is 4 m. The power by
// square roots, which are rounded alike everywhere. Rounding lengths down takes a half off.
CsrMatrix power_law(Shape shape, double mean) {
    course::require(mean >= 1 && mean <= kMostIndices, "power_law: mean is ", mean,
                    "; expected 1 to 2147483647");
    require_shape("power_law", shape, true);
    const double longest = std::max(1, shape.cols / 16);
    std::vector<Index> lengths(shape.rows);
    for (Index row = 0; row < shape.rows; ++row) {
        course::Random random(kSeed, static_cast<std::uint64_t>(row));
        const double u = 1 - static_cast<double>(random.uniform(0, 1));
        const double root = std::sqrt(u);
        lengths[row] = static_cast<Index>(std::min(longest, (mean + 0.5) / 4 / (root * std::sqrt(root))));
    }
    return with_columns_anywhere(shape, lengths);
}

CsrMatrix recursive(Index rows, Index per_row) {
    course::require(rows >= 1 && (rows & (rows - 1)) == 0, "recursive: rows is ", rows,
                    "; expected a power of 2");
    course::require(per_row >= 0, "recursive: per_row is ", per_row, "; expected 0 or more");
    const std::size_t entries = static_cast<std::size_t>(rows) * static_cast<std::size_t>(per_row);
    std::vector<Index> row(entries);
    std::vector<Index> col(entries);
    std::vector<float> values(entries);
#pragma omp parallel for if (rows >= kWorthSharing)
    for (std::size_t i = 0; i < entries; ++i) {
        course::Random random(kSeed, static_cast<std::uint64_t>(i) << 8);
        for (Index half = rows / 2; half > 0; half /= 2) {
            const std::uint32_t percent = random.below(100);
            if (percent >= 76) row[i] += half;                                     // the lower quarters
            if ((percent >= 57 && percent < 76) || percent >= 95) col[i] += half;  // those on the right
        }
        values[i] = random.uniform(-1, 1);
    }
    return CsrMatrix::from_entries({rows, rows}, row, col, values);
}

CsrMatrix mostly_empty(Shape shape, Index period, Index per_row) {
    require_shape("mostly_empty", shape, per_row > 0);
    course::require(period >= 1, "mostly_empty: period is ", period, "; expected 1 or more");
    course::require(per_row >= 1, "mostly_empty: per_row is ", per_row, "; expected 1 or more");
    std::vector<Index> lengths(shape.rows, 0);
    for (Offset row = 0; row < shape.rows; row += period)
        lengths[row] = per_row;
    return with_columns_anywhere(shape, lengths);
}

CsrMatrix laplacian_2d(Index side) {
    course::require(side >= 0 && side <= 46340, "laplacian_2d: side is ", side, "; expected 0 to 46340");
    std::vector<Offset> start = {0};
    std::vector<Index> cols;
    std::vector<float> values;
    for (Index row = 0; row < side * side; ++row) {
        const Index along = row % side;
        const auto add = [&](bool exists, Index col, float value) {
            if (!exists) return;
            cols.push_back(col);
            values.push_back(value);
        };
        add(row >= side, row - side, -1);
        add(along > 0, row - 1, -1);
        add(true, row, 4);
        add(along < side - 1, row + 1, -1);
        add(row < side * (side - 1), row + side, -1);
        start.push_back(static_cast<Offset>(cols.size()));
    }
    return {{side * side, side * side}, std::move(start), std::move(cols), std::move(values)};
}

CsrMatrix node_blocks(Index side, Index unknowns) {
    course::require(side >= 0 && side <= 1290, "node_blocks: side is ", side, "; expected 0 to 1290");
    const Offset nodes = Offset{side} * side * side;
    // Rows must be counted by an Index, and so must the entries of a row, 27 blocks at most.
    const Offset most = kMostIndices / std::max<Offset>(27, nodes);
    course::require(unknowns >= 1 && unknowns <= most, "node_blocks: unknowns is ", unknowns,
                    "; expected 1 to ", most);
    const auto rows = static_cast<Index>(nodes * unknowns);
    // How many nodes lie within one step of coordinate i, and the first of them.
    const auto near = [&](Index i) { return std::min(side - 1, i + 1) - std::max(0, i - 1) + 1; };
    const auto first = [](Index i) { return std::max(0, i - 1); };
    const auto node = [&](Index row) { return row / unknowns; };
    return make(
        {rows, rows},
        [&](Index row) {
            const Index n = node(row);
            return near(n % side) * near(n / side % side) * near(n / side / side) * unknowns;
        },
        [&](Index row, auto col, course::Random&) {
            const Index x = node(row) % side;
            const Index y = node(row) / side % side;
            const Index z = node(row) / side / side;
            for (Index k = first(z); k < first(z) + near(z); ++k) {
                for (Index j = first(y); j < first(y) + near(y); ++j) {
                    const Index begin = ((k * side + j) * side + first(x)) * unknowns;
                    std::iota(col, col + near(x) * unknowns, begin);
                    col += near(x) * unknowns;
                }
            }
        });
}

std::span<const Family> families() {
    static constexpr auto kRoot = [](double number, double exponent) {
        return static_cast<Index>(std::floor(std::pow(number, exponent) + 1e-6));
    };
    static constexpr Family kFamilies[] = {
        {"band", [](Index rows, Index mean) { return banded(rows, mean | 1); }},
        {"random",
         [](Index rows, Index mean) {
             return uniform_random({rows, rows}, mean);
         }},
        {"wide",
         [](Index rows, Index mean) {
             return uniform_random({rows / 64 + 1, rows}, mean * 64);
         }},
        {"tall",
         [](Index rows, Index mean) {
             return uniform_random({rows, rows / 64 + 1}, mean);
         }},
        {"power law",
         [](Index rows, Index mean) {
             return power_law({rows, rows}, mean);
         }},
        {"R-MAT",
         [](Index rows, Index mean) {
             return recursive(static_cast<Index>(std::bit_floor(static_cast<std::uint32_t>(rows))), mean);
         }},
        {"mostly empty",
         [](Index rows, Index mean) {
             return mostly_empty({rows, rows}, 2 + rows % 29, mean * 4);
         }},
        {"laplacian", [](Index rows, Index) { return laplacian_2d(kRoot(rows, 0.5)); }},
        {"blocks",
         [](Index rows, Index mean) {
             const Index unknowns = 1 + mean / 27;
             return node_blocks(std::max(1, kRoot(rows / unknowns, 1 / 3.0)), unknowns);
         }},
    };
    return kFamilies;
}

std::vector<float> whole_numbers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float> values(size);
    for (float& value : values)
        value = static_cast<float>(random.integer(-8, 8));
    return values;
}

CsrMatrix with_whole_values(const CsrMatrix& csr) {
    return {csr.shape(),
            {csr.row_start().begin(), csr.row_start().end()},
            {csr.cols().begin(), csr.cols().end()},
            whole_numbers(static_cast<std::size_t>(csr.entries()), 1)};
}

CsrMatrix from_rows(Index cols, const std::vector<std::vector<Index>>& rows) {
    return make(
        {static_cast<Index>(rows.size()), cols},
        [&](Index row) { return static_cast<Offset>(rows[row].size()); },
        [&](Index row, auto col, course::Random&) { std::copy(rows[row].begin(), rows[row].end(), col); });
}

}  // namespace day35
