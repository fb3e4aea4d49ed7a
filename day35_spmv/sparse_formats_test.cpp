// The formats: what they hold, that they hold the same, and what they refuse.
#include "host/sparse_formats.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/test/device_test.hpp"
#include "host/matrix_generators.hpp"
#include "host/row_statistics.hpp"
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

// Calls f<Format>(name) for each of the formats.
template <class F>
void for_each_format(F f) {
    f.template operator()<CooMatrix>("COO");
    f.template operator()<CsrMatrix>("CSR");
    f.template operator()<EllMatrix>("ELL");
    f.template operator()<HybridMatrix>("hybrid");
    f.template operator()<JdsMatrix>("JDS");
    f.template operator()<SellMatrix>("SELL");
    f.template operator()<PackedSellMatrix>("packed SELL");
}

TEST(Formats, EveryFormatTurnsIntoEveryOther) {
    for (const auto& [name, csr] : awkward_matrices()) {
        for_each_format([&, &name = name, &csr = csr]<class From>(const char* from) {
            const From first = convert<From>(csr);
            for_each_format([&]<class To>(const char* to) {
                expect_same(convert<To>(first).csr(), csr, name + ", " + from + " to " + to);
            });
        });
    }
}

TEST(Formats, WidthsAndWindowsOfAllSizes) {
    for (const auto& [name, csr] : awkward_matrices()) {
        for (const Index width : {0, 1, 5, 100})
            expect_same(HybridMatrix::from(csr, width).csr(), csr, name + ", width " + std::to_string(width));
        for (const Index sigma : {1, 2, 31, 32, 33, 1000, 1 << 30}) {
            expect_same(SellMatrix::from(csr, sigma).csr(), csr, name + ", sigma " + std::to_string(sigma));
            expect_same(PackedSellMatrix::from(csr, sigma).csr(), csr,
                        name + ", packed, sigma " + std::to_string(sigma));
        }
    }
}

// --- What the arrays are, by hand ----------------------------------------------------------------

TEST(Formats, Coo) {
    const CooMatrix coo = CooMatrix::from(small_matrix());
    EXPECT_EQ(list(coo.rows()), (std::vector<Index>{0, 0, 0, 2, 2, 2, 2, 3}));
    EXPECT_EQ(list(coo.cols()), (std::vector<Index>{0, 2, 5, 1, 1, 3, 4, 5}));
    const CooMatrix sorted =
        CooMatrix::sorted({2, 3}, std::vector<Index>{1, 0, 1, 1}, std::vector<Index>{2, 1, 0, 2},
                          std::vector<float>{1, 2, 3, 4});
    EXPECT_EQ(list(sorted.rows()), (std::vector<Index>{0, 1, 1, 1}));
    EXPECT_EQ(list(sorted.cols()), (std::vector<Index>{1, 0, 2, 2}));
    EXPECT_EQ(list(sorted.values()), (std::vector<float>{2, 3, 1, 4}));
}

constexpr Index N = kNoColumn;

TEST(Formats, Ell) {
    const EllMatrix ell = EllMatrix::from(small_matrix());
    EXPECT_EQ(ell.width(), 4);
    EXPECT_EQ(list(ell.cols()), (std::vector<Index>{0, N, 1, 5, 2, N, 1, N, 5, N, 3, N, N, N, 4, N}));
    EXPECT_EQ(list(ell.values()), (std::vector<float>{1, 0, 4, 8, 2, 0, 5, 0, 3, 0, 6, 0, 0, 0, 7, 0}));
}

TEST(Formats, Hybrid) {
    const HybridMatrix hybrid = HybridMatrix::from(small_matrix(), 2);
    EXPECT_EQ(list(hybrid.ell().cols()), (std::vector<Index>{0, N, 1, 5, 2, N, 1, N}));
    EXPECT_EQ(list(hybrid.coo().rows()), (std::vector<Index>{0, 2, 2}));
    EXPECT_EQ(list(hybrid.coo().cols()), (std::vector<Index>{5, 3, 4}));
    EXPECT_EQ(list(hybrid.coo().values()), (std::vector<float>{3, 6, 7}));
    // A third of four rows, rounded down, has at least three entries.
    EXPECT_EQ(HybridMatrix::from(small_matrix()).ell().width(), 3);
}

TEST(Formats, Jds) {
    const JdsMatrix jds = JdsMatrix::from(small_matrix());
    EXPECT_EQ(list(jds.order()), (std::vector<Index>{2, 0, 3, 1}));
    EXPECT_EQ(list(jds.diagonal_start()), (std::vector<Offset>{0, 3, 5, 7, 8}));
    EXPECT_EQ(list(jds.cols()), (std::vector<Index>{1, 0, 5, 1, 2, 3, 5, 4}));
    EXPECT_EQ(list(jds.values()), (std::vector<float>{4, 1, 8, 5, 2, 6, 3, 7}));
}

TEST(Formats, Sell) {
    const SellMatrix sell = SellMatrix::from(small_matrix(), 2);
    EXPECT_EQ(list(sell.order()), (std::vector<Index>{0, 1, 2, 3}));
    EXPECT_EQ(list(SellMatrix::from(small_matrix(), 3).order()), (std::vector<Index>{2, 0, 1, 3}));
    EXPECT_TRUE(SellMatrix::from(small_matrix(), 1).order().empty());
    EXPECT_EQ(list(sell.slice_start()), (std::vector<Offset>{0, 128}));
    for (Index k = 0; k < 4; ++k) {
        for (Index lane = 0; lane < 32; ++lane) {
            const std::vector<std::vector<Index>> expected = {
                {0, 2, 5, N}, {N, N, N, N}, {1, 1, 3, 4}, {5, N, N, N}};
            EXPECT_EQ(sell.cols()[32 * k + lane], lane < 4 ? expected[lane][k] : N) << lane << ", " << k;
        }
    }
}

TEST(Formats, PackedSell) {
    const PackedSellMatrix packed = PackedSellMatrix::from(small_matrix());
    ASSERT_EQ(packed.slices().size(), 1u);
    EXPECT_EQ(packed.slices()[0].width(), 4u);
    EXPECT_EQ(packed.slices()[0].code_bytes(), 1u);
    EXPECT_EQ(packed.slices()[0].base, 0);
    const std::vector<std::vector<int>> expected = {
        {0, 2, 3, 255}, {255, 255, 255, 255}, {1, 0, 2, 1}, {5, 255, 255, 255}};
    for (Index lane = 0; lane < 4; ++lane) {
        for (Index k = 0; k < 4; ++k)
            EXPECT_EQ(packed.codes()[4 * lane + k], expected[lane][k]) << lane << ", " << k;
    }
    // Of a width that is no multiple of four, the last columns stand alone.
    EXPECT_EQ(PackedSellMatrix::place(6, 0, 1), 4u);
    EXPECT_EQ(PackedSellMatrix::place(6, 3, 31), 127u);
    EXPECT_EQ(PackedSellMatrix::place(6, 4, 0), 128u);
    EXPECT_EQ(PackedSellMatrix::place(6, 5, 2), 162u);
    // Places of a wide slice go beyond 32 bits.
    EXPECT_EQ(PackedSellMatrix::place(1u << 29, 1u << 28, 3), (std::size_t{1} << 33) + 12);
    EXPECT_EQ(PackedSellMatrix::place((1u << 29) + 1, 1u << 29, 3), (std::size_t{1} << 34) + 3);
}

// The fewest bytes that hold all differences, where the largest of them stands for an empty place.
TEST(Formats, PackedSellTakesTheSmallestCodes) {
    const auto bytes = [](Index step) {
        return PackedSellMatrix::from(from_rows(step + 1, {{0, step}})).slices()[0].code_bytes();
    };
    EXPECT_EQ(bytes(254), 1u);
    EXPECT_EQ(bytes(255), 2u);
    EXPECT_EQ(bytes(65534), 2u);
    EXPECT_EQ(bytes(65535), 4u);
    // 32 slices, of which the last has but 8 rows: the longest of them has 21 columns.
    EXPECT_EQ(PackedSellMatrix::from(banded(1000, 27)).codes().size(), 32u * (31 * 27 + 21));
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

TEST(Refusals, Coo) {
    const auto make = [](Shape shape, std::vector<Index> rows, std::vector<Index> cols, std::size_t values) {
        return refusal([&] { CooMatrix(shape, rows, cols, std::vector<float>(values)); });
    };
    EXPECT_EQ(make({2, 2}, {0, 1, 1}, {1, 0, 0}, 3), "");
    EXPECT_EQ(make({-1, 2}, {}, {}, 0), "CooMatrix: shape is -1 x 2; expected 0 or more of each");
    EXPECT_EQ(make({2, 2}, {0}, {}, 1), "CooMatrix: cols has 0 elements; expected 1");
    EXPECT_EQ(make({2, 2}, {0}, {0}, 2), "CooMatrix: values has 2 elements; expected 1");
    EXPECT_EQ(make({2, 2}, {0, 2}, {0, 0}, 2), "CooMatrix: entry 1 at (2, 0) is outside of 2 x 2");
    EXPECT_EQ(make({2, 2}, {0, -1}, {0, 0}, 2), "CooMatrix: entry 1 at (-1, 0) is outside of 2 x 2");
    EXPECT_EQ(make({2, 2}, {0, 1}, {0, 2}, 2), "CooMatrix: entry 1 at (1, 2) is outside of 2 x 2");
    EXPECT_EQ(
        make({2, 2}, {1, 0}, {0, 1}, 2),
        "CooMatrix: entry 1 at (0, 1) comes after entry 0 at (1, 0); expected rows, then columns, to ascend");
    EXPECT_EQ(
        make({2, 2}, {1, 1}, {1, 0}, 2),
        "CooMatrix: entry 1 at (1, 0) comes after entry 0 at (1, 1); expected rows, then columns, to ascend");
}

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

TEST(Refusals, Ell) {
    const auto make = [](Index width, std::vector<Index> cols) {
        return refusal([&] { EllMatrix({2, 4}, width, cols, std::vector<float>(cols.size())); });
    };
    EXPECT_EQ(make(2, {0, 1, N, 1}), "");
    EXPECT_EQ(make(-1, {}), "EllMatrix: width is -1; expected 0 or more");
    EXPECT_EQ(make(2, {0, 1, 2}), "EllMatrix: cols has 3 elements; expected 4");
    EXPECT_EQ(make(2, {0, N, 1, 2}), "EllMatrix: row 1 has an entry behind a place that is empty");
    EXPECT_EQ(make(2, {0, 1, 4, N}), "EllMatrix: row 0 has an entry in column 4; the matrix has 4 columns");
    EXPECT_EQ(make(2, {0, 1, 1, 0}),
              "EllMatrix: row 1 has column 0 after column 1; expected ascending columns");
    EXPECT_EQ(make(1, {0, -2}), "EllMatrix: row 1 has an entry in column -2; the matrix has 4 columns");
}

TEST(Refusals, Hybrid) {
    const EllMatrix ell({2, 4}, 1, {1, N}, {1, 0});
    const auto make = [&](Shape shape, std::vector<Index> rows, std::vector<Index> cols) {
        return refusal(
            [&] { HybridMatrix(ell, CooMatrix(shape, rows, cols, std::vector<float>(rows.size()))); });
    };
    EXPECT_EQ(make({2, 4}, {0}, {1}), "");
    EXPECT_EQ(make({2, 5}, {0}, {1}), "HybridMatrix: the COO part is 2 x 5; expected 2 x 4 as the ELL part");
    EXPECT_EQ(make({2, 4}, {0}, {0}),
              "HybridMatrix: row 0 has an entry in the COO part, column 0, that does not come after a full "
              "row of the "
              "ELL part");
    EXPECT_EQ(make({2, 4}, {1}, {3}),
              "HybridMatrix: row 1 has an entry in the COO part, column 3, that does not come after a full "
              "row of the "
              "ELL part");
    EXPECT_EQ(refusal([] { HybridMatrix::from(small_matrix(), -1); }),
              "HybridMatrix: width is -1; expected 0 or more");
}

TEST(Refusals, Jds) {
    const auto make = [](std::vector<Index> order, std::vector<Offset> start, std::vector<Index> cols) {
        return refusal([&] { JdsMatrix({2, 4}, order, start, cols, std::vector<float>(cols.size())); });
    };
    EXPECT_EQ(make({1, 0}, {0, 2, 3}, {0, 1, 0}), "");
    EXPECT_EQ(make({1}, {0}, {}), "JdsMatrix: order has 1 elements; expected 2");
    EXPECT_EQ(make({1, 2}, {0}, {}), "JdsMatrix: order[1] is 2; the matrix has 2 rows");
    EXPECT_EQ(make({1, 1}, {0}, {}), "JdsMatrix: order[1] is 1, which came before; expected each row once");
    EXPECT_EQ(make({1, 0}, {}, {}), "JdsMatrix: diagonal_start has 0 elements; expected 1 or more");
    EXPECT_EQ(make({1, 0}, {1, 3}, {}), "JdsMatrix: diagonal_start[0] is 1; expected 0");
    EXPECT_EQ(make({1, 0}, {0, 1, 3}, {0, 1, 0}),
              "JdsMatrix: diagonal 1 has 2 entries; expected 0 to 1, no more than the one before");
    EXPECT_EQ(make({1, 0}, {0, 3}, {0, 1, 0}),
              "JdsMatrix: diagonal 0 has 3 entries; expected 0 to 2, no more than the one before");
    EXPECT_EQ(make({1, 0}, {0, 2, 3}, {0, 1}), "JdsMatrix: cols has 2 elements; expected 3");
    EXPECT_EQ(make({1, 0}, {0, 2, 3}, {2, 1, 0}),
              "JdsMatrix: row 1 has column 0 after column 2; expected ascending columns");
    EXPECT_EQ(make({1, 0}, {0, 2, 3}, {0, 4, 0}),
              "JdsMatrix: row 0 has an entry in column 4; the matrix has 4 columns");
}

TEST(Refusals, Sell) {
    const auto make = [](std::vector<Index> order, std::vector<Offset> start,
                         const std::vector<std::pair<std::size_t, Index>>& entries) {
        std::vector<Index> cols(64, N);
        for (const auto& [place, col] : entries)
            cols[place] = col;
        return refusal([&] { SellMatrix({2, 4}, order, start, cols, std::vector<float>(64)); });
    };
    EXPECT_EQ(make({}, {0, 64}, {{0, 1}, {32, 1}, {1, 3}}), "");
    EXPECT_EQ(make({0}, {0, 64}, {}), "SellMatrix: order has 1 elements; expected 2");
    EXPECT_EQ(make({}, {0}, {}), "SellMatrix: slice_start has 1 elements; expected 2");
    EXPECT_EQ(make({}, {32, 64}, {}), "SellMatrix: slice_start[0] is 32; expected 0");
    EXPECT_EQ(make({}, {0, 60}, {}), "SellMatrix: slice 0 has 60 places; expected a multiple of 32");
    EXPECT_EQ(make({}, {0, 96}, {}), "SellMatrix: cols has 64 elements; expected 96");
    EXPECT_EQ(make({}, {0, 64}, {{33, 1}}), "SellMatrix: row 1 has an entry behind a place that is empty");
    EXPECT_EQ(make({1, 0}, {0, 64}, {{33, 1}}),
              "SellMatrix: row 0 has an entry behind a place that is empty");
    EXPECT_EQ(make({}, {0, 64}, {{1, 4}}),
              "SellMatrix: row 1 has an entry in column 4; the matrix has 4 columns");
    EXPECT_EQ(make({}, {0, 64}, {{2, 0}}), "SellMatrix: row 2 has an entry; the matrix has 2 rows");
    EXPECT_EQ(refusal([] { SellMatrix::from(small_matrix(), 0); }),
              "SellMatrix: sigma is 0; expected 1 or more");
}

TEST(Refusals, PackedSell) {
    const PackedSlice slice{.first_value = 0, .first_code = 0, .base = 1, .width_and_bytes = 4 * 2};
    const auto make = [](PackedSlice one, const std::vector<std::pair<std::size_t, std::uint8_t>>& entries,
                         std::size_t values = 64) {
        std::vector<std::uint8_t> codes(64, 0xff);
        for (const auto& [place, code] : entries)
            codes[place] = code;
        return refusal([&] { PackedSellMatrix({2, 4}, {}, {one}, codes, std::vector<float>(values)); });
    };
    EXPECT_EQ(make(slice, {{0, 0}, {32, 2}, {1, 2}}), "");
    EXPECT_EQ(make(slice, {}, 63), "PackedSellMatrix: values has 63 elements; expected 64");
    const std::string outside = " has an entry outside of 2 x 4, or behind a place that is empty";
    EXPECT_EQ(make(slice, {{0, 0}, {32, 3}}), "PackedSellMatrix: row 0" + outside);
    EXPECT_EQ(make(slice, {{33, 0}}), "PackedSellMatrix: row 1" + outside);
    EXPECT_EQ(make(slice, {{2, 0}}), "PackedSellMatrix: row 2" + outside);
    PackedSlice wrong = slice;
    wrong.first_value = 1;
    EXPECT_EQ(make(wrong, {}),
              "PackedSellMatrix: slice 0 begins with value 1 and code 0; expected 0 and 0, where the one "
              "before ends");
    wrong = slice;
    wrong.base = -1;
    EXPECT_EQ(make(wrong, {}), "PackedSellMatrix: slice 0 has base -1; expected 0 or more");
    wrong = slice;
    wrong.width_and_bytes += 3;
    EXPECT_EQ(make(wrong, {}), "PackedSellMatrix: slice 0 has codes of 8 bytes; expected 1, 2 or 4");
    EXPECT_EQ(refusal([] { PackedSellMatrix::from(small_matrix(), 0); }),
              "PackedSellMatrix: sigma is 0; expected 1 or more");
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
