// The formats: what they hold, that they hold the same, and what they refuse.
#include "host/formats.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/test/device_test.hpp"
#include "host/matrices.hpp"
#include "test_matrices.hpp"

namespace {

using namespace day35;
using course::refusal;

template <class T>
std::vector<T> list(std::span<const T> span) {
    return {span.begin(), span.end()};
}

// 4 x 6: [0 2 5], [], [1 1 3 4], [5]; values 1, 2, ...
CsrMatrix small_matrix() {
    return {{4, 6}, {0, 3, 3, 7, 8}, {0, 2, 5, 1, 1, 3, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8}};
}

void expect_same(const CsrMatrix& got, const CsrMatrix& expected, const std::string& name) {
    EXPECT_EQ(got.shape(), expected.shape()) << name;
    EXPECT_EQ(list(got.row_start()), list(expected.row_start())) << name;
    EXPECT_EQ(list(got.cols()), list(expected.cols())) << name;
    EXPECT_EQ(list(got.values()), list(expected.values())) << name;
}

// --- The same entries, read back from each format ------------------------------------------------

// Collects entries by row. `add` is called for the entries of a row in their order.
class Entries {
  public:
    explicit Entries(Shape shape) : shape_(shape), rows_(shape.rows) {}
    void add(Offset row, Index col, float value) { rows_.at(row).emplace_back(col, value); }
    CsrMatrix csr() const {
        std::vector<Offset> start = {0};
        std::vector<Index> cols;
        std::vector<float> values;
        for (const auto& row : rows_) {
            for (const auto& [col, value] : row) {
                cols.push_back(col);
                values.push_back(value);
            }
            start.push_back(static_cast<Offset>(cols.size()));
        }
        return {shape_, start, cols, values};
    }

  private:
    Shape shape_;
    std::vector<std::vector<std::pair<Index, float>>> rows_;
};

// Adds row `row` from `width` places; after its entries there is only filling, with value 0.
template <class Place>
void add_filled_row(Entries& entries, Offset row, Offset width, const std::vector<Index>& cols,
                    const std::vector<float>& values, Place place) {
    bool ended = false;
    for (Offset k = 0; k < width; ++k) {
        const std::size_t i = place(k);
        ended = ended || cols.at(i) == kNoColumn;
        if (!ended) {
            entries.add(row, cols.at(i), values.at(i));
        } else if (cols.at(i) != kNoColumn || values.at(i) != 0) {
            ADD_FAILURE() << "row " << row << " has an entry behind an empty place";
        }
    }
}

void add_coo(Entries& entries, const CooMatrix& coo) {
    for (std::size_t i = 0; i < coo.rows.size(); ++i)
        entries.add(coo.rows[i], coo.cols.at(i), coo.values.at(i));
}

void add_ell(Entries& entries, const EllMatrix& ell) {
    for (Offset row = 0; row < ell.shape.rows; ++row)
        add_filled_row(entries, row, ell.width, ell.cols, ell.values,
                       [&](Offset k) { return k * ell.shape.rows + row; });
}

CsrMatrix read_back(Shape shape, const CooMatrix& coo) {
    Entries entries(shape);
    add_coo(entries, coo);
    return entries.csr();
}

CsrMatrix read_back(Shape shape, const CscMatrix& csc) {
    Entries entries(shape);
    for (Index col = 0; col < shape.cols; ++col) {
        for (Offset i = csc.col_start.at(col); i < csc.col_start.at(col + 1); ++i)
            entries.add(csc.rows.at(i), col, csc.values.at(i));
    }
    return entries.csr();
}

CsrMatrix read_back(Shape shape, const EllMatrix& ell) {
    Entries entries(shape);
    add_ell(entries, ell);
    return entries.csr();
}

CsrMatrix read_back(Shape shape, const HybridMatrix& hybrid) {
    Entries entries(shape);
    add_ell(entries, hybrid.ell);
    add_coo(entries, hybrid.coo);
    return entries.csr();
}

CsrMatrix read_back(Shape shape, const JdsMatrix& jds) {
    Entries entries(shape);
    for (std::size_t k = 0; k + 1 < jds.diagonal_start.size(); ++k) {
        for (Offset i = jds.diagonal_start[k]; i < jds.diagonal_start[k + 1]; ++i)
            entries.add(jds.order.at(i - jds.diagonal_start[k]), jds.cols.at(i), jds.values.at(i));
    }
    EXPECT_EQ(jds.diagonal_start.back(), static_cast<Offset>(jds.cols.size()));
    return entries.csr();
}

// The row at a place; places beyond the last row have none.
Offset row_at(const std::vector<Index>& order, Offset place) {
    return order.empty() ? place : order.at(place);
}

CsrMatrix read_back(Shape shape, const SellMatrix& sell) {
    Entries entries(shape);
    for (Offset place = 0; place < shape.rows; ++place) {
        const Offset first = sell.slice_start.at(place / kSliceRows);
        const Offset width = (sell.slice_start.at(place / kSliceRows + 1) - first) / kSliceRows;
        add_filled_row(entries, row_at(sell.order, place), width, sell.cols, sell.values,
                       [&](Offset k) { return first + 32 * k + place % 32; });
    }
    EXPECT_EQ(sell.slice_start.back(), static_cast<Offset>(sell.cols.size()));
    return entries.csr();
}

CsrMatrix read_back(Shape shape, const PackedSellMatrix& packed) {
    Entries entries(shape);
    for (Offset place = 0; place < shape.rows; ++place) {
        const PackedSlice& slice = packed.slices.at(place / kSliceRows);
        const std::uint32_t bytes = slice.code_bytes();
        Index col = slice.base;
        bool ended = false;
        for (std::uint32_t k = 0; k < slice.width(); ++k) {
            const std::size_t i = packed_place(slice.width(), k, place % kSliceRows);
            std::uint32_t code = 0;
            for (std::uint32_t byte = 0; byte < bytes; ++byte)
                code |= std::uint32_t{packed.codes.at(32 * std::size_t{slice.first_code} + i * bytes + byte)}
                        << 8 * byte;
            const float value = packed.values.at(32 * std::size_t{slice.first_value} + i);
            const bool is_empty = code == 0xffffffffu >> (32 - 8 * bytes);
            ended = ended || is_empty;
            if (ended) {
                EXPECT_TRUE(is_empty && value == 0) << "row at place " << place << ", entry " << k;
                continue;
            }
            col += static_cast<Index>(code);
            entries.add(row_at(packed.order, place), col, value);
        }
    }
    return entries.csr();
}

TEST(Formats, EveryFormatHoldsTheSameEntries) {
    for (const auto& [name, csr] : awkward_matrices()) {
        expect_same(read_back(csr.shape(), to_coo(csr)), csr, name + ", COO");
        expect_same(read_back(csr.shape(), to_csc(csr)), csr, name + ", CSC");
        expect_same(read_back(csr.shape(), to_ell(csr)), csr, name + ", ELL");
        expect_same(read_back(csr.shape(), to_hybrid(csr)), csr, name + ", hybrid");
        expect_same(read_back(csr.shape(), to_jds(csr)), csr, name + ", JDS");
    }
}

// Within each window of sigma rows, the longest row comes first.
void expect_sorted_windows(const CsrMatrix& csr, const std::vector<Index>& order, Index sigma,
                           const std::string& name) {
    for (std::size_t place = 1; place < order.size(); ++place) {
        if (static_cast<Index>(place) % sigma == 0) continue;
        ASSERT_GE(csr.row_length(order[place - 1]), csr.row_length(order[place]))
            << name << ", place " << place;
    }
}

TEST(Formats, WidthsAndWindowsOfAllSizes) {
    for (const auto& [name, csr] : awkward_matrices()) {
        for (const Index width : {0, 1, 5, 100})
            expect_same(read_back(csr.shape(), to_hybrid(csr, width)), csr,
                        name + ", width " + std::to_string(width));
        for (const Index sigma : {1, 2, 31, 32, 33, 1 << 30}) {
            expect_sorted_windows(csr, to_sell(csr, sigma).order, sigma,
                                  name + ", sigma " + std::to_string(sigma));
            expect_same(read_back(csr.shape(), to_sell(csr, sigma)), csr,
                        name + ", sigma " + std::to_string(sigma));
            expect_same(read_back(csr.shape(), to_packed_sell(csr, sigma)), csr,
                        name + ", packed, sigma " + std::to_string(sigma));
        }
    }
}

// --- What the arrays are, by hand ----------------------------------------------------------------

TEST(Formats, Coo) {
    const CooMatrix coo = to_coo(small_matrix());
    EXPECT_EQ(coo.rows, (std::vector<Index>{0, 0, 0, 2, 2, 2, 2, 3}));
    EXPECT_EQ(coo.cols, (std::vector<Index>{0, 2, 5, 1, 1, 3, 4, 5}));
}

TEST(Formats, Csc) {
    const CscMatrix csc = to_csc(small_matrix());
    EXPECT_EQ(csc.col_start, (std::vector<Offset>{0, 1, 3, 4, 5, 6, 8}));
    EXPECT_EQ(csc.rows, (std::vector<Index>{0, 2, 2, 0, 2, 2, 0, 3}));
    EXPECT_EQ(csc.values, (std::vector<float>{1, 4, 5, 2, 6, 7, 3, 8}));
}

TEST(Formats, CsrFromEntriesInAnyOrder) {
    const CsrMatrix csr =
        CsrMatrix::from_entries({2, 3}, std::vector<Index>{1, 0, 1, 1}, std::vector<Index>{2, 1, 0, 2},
                                std::vector<float>{1, 2, 3, 4});
    EXPECT_EQ(list(csr.row_start()), (std::vector<Offset>{0, 1, 4}));
    EXPECT_EQ(list(csr.cols()), (std::vector<Index>{1, 0, 2, 2}));
    EXPECT_EQ(list(csr.values()), (std::vector<float>{2, 3, 1, 4}));
}

constexpr Index N = kNoColumn;

TEST(Formats, Ell) {
    const EllMatrix ell = to_ell(small_matrix());
    EXPECT_EQ(ell.width, 4);
    EXPECT_EQ(ell.cols, (std::vector<Index>{0, N, 1, 5, 2, N, 1, N, 5, N, 3, N, N, N, 4, N}));
    EXPECT_EQ(ell.values, (std::vector<float>{1, 0, 4, 8, 2, 0, 5, 0, 3, 0, 6, 0, 0, 0, 7, 0}));
}

TEST(Formats, Hybrid) {
    const HybridMatrix hybrid = to_hybrid(small_matrix(), 2);
    EXPECT_EQ(hybrid.ell.cols, (std::vector<Index>{0, N, 1, 5, 2, N, 1, N}));
    EXPECT_EQ(hybrid.coo.rows, (std::vector<Index>{0, 2, 2}));
    EXPECT_EQ(hybrid.coo.cols, (std::vector<Index>{5, 3, 4}));
    EXPECT_EQ(hybrid.coo.values, (std::vector<float>{3, 6, 7}));
    // A third of four rows, rounded down, has at least three entries.
    EXPECT_EQ(to_hybrid(small_matrix()).ell.width, 3);
}

TEST(Formats, Jds) {
    const JdsMatrix jds = to_jds(small_matrix());
    EXPECT_EQ(jds.order, (std::vector<Index>{2, 0, 3, 1}));
    EXPECT_EQ(jds.diagonal_start, (std::vector<Offset>{0, 3, 5, 7, 8}));
    EXPECT_EQ(jds.cols, (std::vector<Index>{1, 0, 5, 1, 2, 3, 5, 4}));
    EXPECT_EQ(jds.values, (std::vector<float>{4, 1, 8, 5, 2, 6, 3, 7}));
}

TEST(Formats, Sell) {
    const SellMatrix sell = to_sell(small_matrix(), 2);
    EXPECT_EQ(sell.order, (std::vector<Index>{0, 1, 2, 3}));
    EXPECT_EQ(to_sell(small_matrix(), 3).order, (std::vector<Index>{2, 0, 1, 3}));
    EXPECT_TRUE(to_sell(small_matrix(), 1).order.empty());
    EXPECT_EQ(sell.slice_start, (std::vector<Offset>{0, 128}));
    for (Index k = 0; k < 4; ++k) {
        for (Index lane = 0; lane < 32; ++lane) {
            const std::vector<std::vector<Index>> expected = {
                {0, 2, 5, N}, {N, N, N, N}, {1, 1, 3, 4}, {5, N, N, N}};
            EXPECT_EQ(sell.cols[32 * k + lane], lane < 4 ? expected[lane][k] : N) << lane << ", " << k;
        }
    }
}

TEST(Formats, PackedSell) {
    const PackedSellMatrix packed = to_packed_sell(small_matrix(), 1);
    ASSERT_EQ(packed.slices.size(), 1u);
    EXPECT_EQ(packed.slices[0].width(), 4u);
    EXPECT_EQ(packed.slices[0].code_bytes(), 1u);
    EXPECT_EQ(packed.slices[0].base, 0);
    const std::vector<std::vector<int>> expected = {
        {0, 2, 3, 255}, {255, 255, 255, 255}, {1, 0, 2, 1}, {5, 255, 255, 255}};
    for (Index lane = 0; lane < 4; ++lane) {
        for (Index k = 0; k < 4; ++k)
            EXPECT_EQ(packed.codes[4 * lane + k], expected[lane][k]) << lane << ", " << k;
    }
    // Of a width that is no multiple of four, the last columns stand alone.
    EXPECT_EQ(packed_place(6, 0, 1), 4u);
    EXPECT_EQ(packed_place(6, 3, 31), 127u);
    EXPECT_EQ(packed_place(6, 4, 0), 128u);
    EXPECT_EQ(packed_place(6, 5, 2), 162u);
    // Places of a wide slice go beyond 32 bits.
    EXPECT_EQ(packed_place(1u << 29, 1u << 28, 3), (std::size_t{1} << 33) + 12);
    EXPECT_EQ(packed_place((1u << 29) + 1, 1u << 29, 3), (std::size_t{1} << 34) + 3);
}

// The fewest bytes that hold all differences, where the largest code marks an empty place.
TEST(Formats, PackedSellTakesTheSmallestCodes) {
    const auto bytes = [](Index step) {
        return to_packed_sell(from_rows(step + 1, {{0, step}}), 1).slices[0].code_bytes();
    };
    EXPECT_EQ(bytes(254), 1u);
    EXPECT_EQ(bytes(255), 2u);
    EXPECT_EQ(bytes(65534), 2u);
    EXPECT_EQ(bytes(65535), 4u);
    // 32 slices, of which the last has but 8 rows: the longest of them has 21 columns.
    EXPECT_EQ(to_packed_sell(banded(1000, 27), 1).codes.size(), 32u * (31 * 27 + 21));
}

// --- Value semantics -----------------------------------------------------------------------------

Offset entries_of(CsrMatrix by_value) {
    return by_value.entries();
}

TEST(ValueSemantics, CopiesShareAndOutliveEachOther) {
    std::optional<CsrMatrix> first = small_matrix();
    const CsrMatrix second = *first;
    EXPECT_EQ(second.values().data(), first->values().data()) << "a copy copies no entry";
    EXPECT_EQ(entries_of(*first), 8);
    EXPECT_EQ(entries_of(*first), 8) << "passing by value has freed something";
    first.reset();
    expect_same(second, small_matrix(), "after the first was destroyed");
}

TEST(ValueSemantics, AssignmentAndMovesLeaveWholeMatrices) {
    CsrMatrix matrix = small_matrix();
    const CsrMatrix moved = std::move(matrix);
    expect_same(moved, small_matrix(), "moved to");
    expect_same(matrix, small_matrix(),
                "moved from");  // NOLINT(bugprone-use-after-move): that is what is tested
    CsrMatrix& alias = matrix;
    matrix = alias;
    expect_same(matrix, small_matrix(), "assigned to itself");
    const CsrMatrix copy = matrix;
    matrix = banded(3, 1);
    expect_same(copy, small_matrix(), "a copy of what was then replaced");
}

// --- What is refused -----------------------------------------------------------------------------

TEST(Refusals, Csr) {
    const auto make = [](std::vector<Offset> start, std::vector<Index> cols, std::size_t values) {
        return refusal([&] { CsrMatrix({3, 4}, start, cols, std::vector<float>(values)); });
    };
    EXPECT_EQ(make({0, 1, 1, 3}, {3, 0, 0}, 3), "");
    EXPECT_EQ(make({0, 1, 3}, {3, 0, 0}, 3), "CsrMatrix: row_start has 3 elements; expected 4");
    EXPECT_EQ(make({1, 1, 1, 3}, {3, 0, 0}, 3), "CsrMatrix: row_start[0] is 1; expected 0");
    EXPECT_EQ(make({0, 2, 1, 3}, {0, 1, 2}, 3), "CsrMatrix: row 1 ends before it begins, at 1 and 2");
    EXPECT_EQ(make({0, 1, 1 + (Offset{1} << 31), 1 + (Offset{1} << 31)}, {}, 0),
              "CsrMatrix: row 1 has 2147483648 entries; expected at most 2147483647");
    EXPECT_EQ(make({0, 1, Offset{1} << 31, Offset{1} << 31}, {}, 0),
              "CsrMatrix: cols has 0 elements; expected 2147483648");
    EXPECT_EQ(make({0, 1, 2, 3}, {0, 1}, 3), "CsrMatrix: cols has 2 elements; expected 3");
    EXPECT_EQ(make({0, 1, 2, 3}, {0, 1, 2}, 4), "CsrMatrix: values has 4 elements; expected 3");
    EXPECT_EQ(make({0, 1, 2, 3}, {0, 1, 4}, 3),
              "CsrMatrix: row 2 has an entry in column 4; the matrix has 4 columns");
    EXPECT_EQ(make({0, 1, 2, 3}, {0, -1, 2}, 3),
              "CsrMatrix: row 1 has an entry in column -1; the matrix has 4 columns");
    EXPECT_EQ(make({0, 1, 1, 3}, {0, 2, 1}, 3),
              "CsrMatrix: row 2 has column 1 after column 2; expected ascending columns");
}

TEST(Refusals, EntriesInAnyOrder) {
    const auto make = [](std::vector<Index> rows, std::vector<Index> cols, std::size_t values) {
        return refusal([&] { CsrMatrix::from_entries({2, 2}, rows, cols, std::vector<float>(values)); });
    };
    EXPECT_EQ(make({1, 0, 1}, {0, 1, 0}, 3), "");
    EXPECT_EQ(make({0}, {}, 1), "CsrMatrix: cols has 0 elements; expected 1");
    EXPECT_EQ(make({0}, {0}, 2), "CsrMatrix: values has 2 elements; expected 1");
    EXPECT_EQ(make({0, 2}, {0, 0}, 2), "CsrMatrix: entry 1 is in row 2; the matrix has 2 rows");
    EXPECT_EQ(make({-1, 0}, {0, 0}, 2), "CsrMatrix: entry 0 is in row -1; the matrix has 2 rows");
    EXPECT_EQ(make({0, 1}, {0, 2}, 2), "CsrMatrix: row 1 has an entry in column 2; the matrix has 2 columns");
}

TEST(Refusals, WidthsAndWindows) {
    EXPECT_EQ(refusal([] { to_hybrid(small_matrix(), -1); }), "to_hybrid: width is -1; expected 0 or more");
    EXPECT_EQ(refusal([] { to_sell(small_matrix(), 0); }), "to_sell: sigma is 0; expected 1 or more");
    EXPECT_EQ(refusal([] { to_packed_sell(small_matrix(), 0); }),
              "to_packed_sell: sigma is 0; expected 1 or more");
}

// --- Statistics and generators -------------------------------------------------------------------

TEST(Statistics, ByHand) {
    const RowStatistics rows = row_statistics(small_matrix());
    EXPECT_EQ(rows.entries, 8);
    EXPECT_EQ(rows.longest, 4);
    EXPECT_EQ(rows.empty, 1);
    EXPECT_DOUBLE_EQ(rows.mean, 2);
    EXPECT_DOUBLE_EQ(rows.spread, std::sqrt((1 + 4 + 4 + 1) / 4.0) / 2);
    EXPECT_DOUBLE_EQ(rows.ell_filling, 2);
    EXPECT_DOUBLE_EQ(rows.sell_filling, 32 * 4 / 8.0);
    // Alternating rows of 1 and 9: sorted, half the slices are narrow.
    std::vector<Index> lengths(128);
    for (std::size_t i = 0; i < lengths.size(); ++i)
        lengths[i] = i % 2 == 0 ? 1 : 9;
    const RowStatistics mixed = row_statistics(with_lengths(lengths));
    EXPECT_DOUBLE_EQ(mixed.sell_filling, 9 / 5.0);
    EXPECT_DOUBLE_EQ(mixed.sorted_filling, 1);
    EXPECT_EQ(row_statistics(from_rows(0, {})).longest, 0);
}

TEST(Generators, MostlyEmptyAndRecursive) {
    const CsrMatrix sparse = mostly_empty({100, 40}, 7, 3);
    EXPECT_EQ(sparse.entries(), 15 * 3);
    EXPECT_EQ(row_statistics(sparse).empty, 85);
    EXPECT_EQ(sparse.row_length(7), 3);

    // A quarter of the halves gets each entry: 76 % of them lie in the upper half, and in the left.
    const CsrMatrix network = recursive(1 << 12, 8);
    ASSERT_EQ(network.entries(), 8 << 12);
    const auto share = [&](std::ptrdiff_t count) {
        return static_cast<double>(count) / static_cast<double>(network.entries());
    };
    EXPECT_NEAR(share(network.row_start()[1 << 11]), 0.76, 0.02);
    EXPECT_NEAR(share(std::ranges::count_if(network.cols(), [](Index col) { return col < 1 << 11; })), 0.76,
                0.02);
    EXPECT_GT(row_statistics(network).longest, 200);
    EXPECT_EQ(recursive(1, 3).entries(), 3);
    EXPECT_EQ(refusal([] { recursive(12, 3); }), "recursive: rows is 12; expected a power of 2");
    EXPECT_EQ(refusal([] { mostly_empty({5, 5}, 0, 1); }), "mostly_empty: period is 0; expected 1 or more");
}

TEST(Generators, FamiliesHaveAboutAsManyRowsAndEntriesAsAskedFor) {
    for (const Family& family : families()) {
        const std::string name = family.name;
        const CsrMatrix csr = family.make(5000, 26);
        const double rows = name == "wide" ? 64.0 * csr.shape().rows : csr.shape().rows;
        EXPECT_GE(rows, 2500) << name;
        EXPECT_LE(rows, 5100) << name;
        const double mean = static_cast<double>(csr.entries()) / rows;
        EXPECT_NEAR(mean,
                    name == "laplacian"      ? 5
                    : name == "mostly empty" ? 108.0 / (2 + 5000 % 29)
                                             : 26,
                    7)  // the longest rows of a power law are cut
            << name;
        EXPECT_GE(family.make(1, 1).shape().rows, 1) << name;
    }
}

TEST(Generators, ShapesAndLengths) {
    const CsrMatrix band = banded(100, 27);
    EXPECT_EQ(band.entries(), 27 * 100 - 2 * (13 * 14 / 2));
    EXPECT_EQ(band.cols()[0], 0);
    EXPECT_EQ(band.cols().back(), 99);
    const CsrMatrix laplacian = laplacian_2d(10);
    EXPECT_EQ(laplacian.entries(), 5 * 100 - 4 * 10);
    EXPECT_EQ(node_blocks(5, 3).entries(), 9 * 13 * 13 * 13) << "13 connections along each axis of 5 nodes";
    const CsrMatrix skewed = power_law({100000, 100000}, 9.56);
    EXPECT_NEAR(row_statistics(skewed).mean, 9.56, 1);
    EXPECT_GT(row_statistics(skewed).longest, 2000);
    EXPECT_EQ(refusal([] { banded(5, 4); }), "banded: band is 4; expected 1, 3, 5, ...");
    EXPECT_EQ(refusal([] {
                  uniform_random({5, 0}, 1);
              }),
              "uniform_random: shape is 5 x 0; expected columns for the entries to be in");
    EXPECT_EQ(refusal([] {
                  uniform_random({-1, 5}, 3);
              }),
              "uniform_random: shape is -1 x 5; expected 0 or more of each");
    EXPECT_EQ(refusal([] {
                  uniform_random({5, 5}, -3);
              }),
              "uniform_random: per_row is -3; expected 0 or more");
    EXPECT_EQ(refusal([] {
                  power_law({5, -1}, 3);
              }),
              "power_law: shape is 5 x -1; expected 0 or more of each");
    EXPECT_EQ(refusal([] { banded(-5, 3); }), "banded: rows is -5; expected 0 or more");
    EXPECT_EQ(refusal([] { node_blocks(2000, 3); }), "node_blocks: side is 2000; expected 0 to 1290");
    EXPECT_EQ(refusal([] { node_blocks(1290, 2); }), "node_blocks: unknowns is 2; expected 1 to 1");
    EXPECT_EQ(refusal([] { node_blocks(2, 0); }), "node_blocks: unknowns is 0; expected 1 to 79536431");
    EXPECT_EQ(refusal([] { power_law({5, 5}, 0.5); }), "power_law: mean is 0.5; expected 1 to 2147483647");
}

}  // namespace
