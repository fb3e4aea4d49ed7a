// Every version on every matrix against the CPU: whole numbers, which add exactly in any order, and
// floats.
#include "spmv.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "device_csr.hpp"
#include "test_matrices.hpp"

namespace {

using namespace day35;
using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Made once: the awkward ones, and one dense row of 100 000 entries among empty ones; all with
// whole values.
const std::vector<std::pair<std::string, CsrMatrix>>& matrices() {
    static const auto list = [] {
        auto all = awkward_matrices();
        all.emplace_back("dense row", one_dense_row(3000, 1234, 100000));
        for (auto& [name, csr] : all)
            csr = with_whole_values(csr);
        return all;
    }();
    return list;
}

class VersionTest : public course::DeviceTestWithParam<const Spmv*> {
  protected:
    struct Options {
        OffsetRule rule = OffsetRule::kAsNeeded;
        std::size_t offset = 0;  // of x and y, in floats, from a well-aligned address
        double factor = 2;       // of the error allowed; 0: equal
    };

    // y = A x for each x with the same operator, against the reference. Nothing where the version
    // cannot run this matrix.
    static void expect_right(const CsrMatrix& csr, const std::vector<std::vector<float>>& vectors,
                             const Options& options) {
        if (!GetParam()->cannot_run(row_statistics(csr)).empty()) return;
        const auto product = GetParam()->launcher(csr, options.rule);
        EXPECT_EQ(product->shape(), csr.shape());
        EXPECT_LE(product->least_bytes(), product->stored_bytes());
        GuardedBuffer<float> y(csr.shape().rows, options.offset);
        for (const std::vector<float>& x : vectors) {
            // What lies around x is none of the matrix's columns.
            constexpr std::size_t kBehind = 4;
            std::vector<float> around(options.offset + x.size() + kBehind,
                                      std::numeric_limits<float>::quiet_NaN());
            std::copy(x.begin(), x.end(), around.begin() + static_cast<std::ptrdiff_t>(options.offset));
            const DeviceBuffer<float> x_device{std::span<const float>(around)};
            y.spoil();
            product->multiply(x_device.span().subspan(options.offset, x.size()), y.span());
            const Reference reference = multiply_on_cpu(csr, x);
            course::VerifyResult result =
                course::verify(y.to_host(), reference.y, {.factor = options.factor}, reference.magnitude);
            result.damage = y.damage();
            EXPECT_TRUE(result.ok()) << "y for vector x number " << (&x - vectors.data()) << ": "
                                     << result.message();
        }
    }

    static void expect_exact(const CsrMatrix& csr) { expect_exact(csr, Options()); }
    static void expect_exact(const CsrMatrix& csr, const Options& options) {
        Options exact = options;
        exact.factor = 0;
        expect_right(csr, {whole_numbers(csr.shape().cols, 2), whole_numbers(csr.shape().cols, 5)}, exact);
    }
};

INSTANTIATE_TEST_SUITE_P(Day35, VersionTest, course::each_of(versions()), course::VersionName());

TEST_P(VersionTest, WholeNumbersExactly) {
    for (const auto& [name, csr] : matrices()) {
        SCOPED_TRACE(name);
        expect_exact(csr);
    }
}

TEST_P(VersionTest, WideOffsetsAndAnyAlignment) {
    for (const auto& [name, csr] : matrices()) {
        SCOPED_TRACE(name);
        expect_exact(csr, {.rule = OffsetRule::kWide, .offset = 1 + csr.cols().size() % 3});
    }
}

TEST_P(VersionTest, FloatPatterns) {
    for (const auto& csr :
         {laplacian_2d(20), power_law({500, 4000}, 9), node_blocks(3, 3), one_dense_row(300, 100, 5000)}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kWithNan, DataPattern::kWithInf}) {
            SCOPED_TRACE(std::string(course::name(pattern)) + ", " + std::to_string(csr.entries()) +
                         " entries");
            expect_right(csr, {course::make_data<float>(csr.shape().cols, pattern, 35)}, Options());
        }
    }
}

// Only the rows with an entry in an infinite column may know of it: no filling is multiplied, and
// no neighbour's entry.
TEST_P(VersionTest, InfinityStaysInItsColumns) {
    for (const auto& [name, csr] : matrices()) {
        std::vector<std::vector<float>> vectors;
        if (csr.shape().cols == 0) continue;
        for (const Index col : {0, csr.shape().cols / 2, csr.shape().cols - 1}) {
            vectors.push_back(whole_numbers(csr.shape().cols, 3));
            vectors.back()[col] = kInf;
        }
        SCOPED_TRACE(name);
        expect_right(csr, vectors, {.factor = 0});
    }
}

TEST_P(VersionTest, RandomMatrices) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        course::Random random(seed * 1000);
        const Shape shape{random.integer(0, 700), random.integer(0, 3000)};
        const Index longest = random.integer(0, seed % 3 == 0 ? 9000 : 300);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(shape.rows) + " x " +
                     std::to_string(shape.cols) + ", rows of up to " + std::to_string(longest));
        expect_exact(with_whole_values(random_matrix(shape, longest, seed)));
    }
}

// csr_adaptive gives a block 256 to 1,024 entries, as many as leave eight blocks for each
// multiprocessor.
TEST_P(VersionTest, ManyEntriesForEachMultiprocessor) {
    for (const Index entries : {600, 1100}) {
        const Index rows = static_cast<Index>(course::multiprocessors()) * entries;  // of eight entries
        SCOPED_TRACE(std::to_string(rows) + " rows");
        expect_exact(with_whole_values(power_law({rows, 40000}, 8)));
    }
}

// Rows that end where a block's or a thread's share ends, one before and one after it.
TEST_P(VersionTest, RowsAroundTheShareOfABlock) {
    for (const Index around : {8, 32, 256, 1024, 2048, 4096}) {
        for (const Index length : {around - 4, around - 1, around, around + 1, around + 4}) {
            SCOPED_TRACE("rows of " + std::to_string(length) + " entries");
            expect_exact(with_whole_values(with_lengths({3, length, 0, length, 1, length + 1})));
        }
    }
    for (const Index rows : {2046, 2047, 2048, 2049, 4095, 4096, 4097}) {
        SCOPED_TRACE(std::to_string(rows) + " rows");
        expect_exact(with_whole_values(one_dense_row(rows, rows - 1, 1)));
        expect_exact(with_whole_values(one_dense_row(rows, 0, 2050)));
    }
}

// COO and CSC set y to 0 first; the hybrid and the merge add with a second kernel.
std::size_t expected_nodes(const std::string& version) {
    return version.starts_with("coo_") || version == "csc_atomic" || version == "hybrid" ||
                   version == "csr_merge"
               ? 2
               : 1;
}

TEST_P(VersionTest, OperatorOutlivesTheMatrixAndRunsOnTheGivenStream) {
    std::unique_ptr<Operator> product;
    std::vector<float> x;
    Reference reference;
    {
        const CsrMatrix csr = with_whole_values(power_law({400, 9000}, 8));
        if (const std::string reason = GetParam()->cannot_run(row_statistics(csr)); !reason.empty())
            GTEST_SKIP() << reason;
        x = whole_numbers(csr.shape().cols, 4);
        reference = multiply_on_cpu(csr, x);
        product = GetParam()->launcher(csr, OffsetRule::kAsNeeded);
    }
    const DeviceBuffer<float> x_device{std::span<const float>(x)};
    GuardedBuffer<float> y(product->shape().rows);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { product->multiply(x_device.span(), y.span(), stream); });
    EXPECT_EQ(work.nodes(), expected_nodes(GetParam()->name)) << "something was queued on another stream";
    work.run();
    course::VerifyResult result =
        course::verify(y.to_host(), reference.y, {.factor = 0}, reference.magnitude);
    result.damage = y.damage();
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, RefusesBadArguments) {
    const auto product = GetParam()->launcher(banded(10, 3), OffsetRule::kAsNeeded);
    auto buffer = course::zeros<float>(64);
    const auto message = [&](DeviceSpan<float> x, DeviceSpan<float> y) -> std::string {
        try {
            product->multiply(x, y);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    const DeviceSpan<float> all = buffer.span();
    EXPECT_EQ(message(all.subspan(0, 9), all.subspan(20, 10)),
              "spmv: x has 9 elements; expected 10, for a matrix of 10 x 10");
    EXPECT_EQ(message(all.subspan(0, 10), all.subspan(20, 11)),
              "spmv: y has 11 elements; expected 10, for a matrix of 10 x 10");
    EXPECT_EQ(message(all.subspan(0, 10), all.subspan(9, 10)),
              "spmv: y overlaps x; expected memory of its own");
    EXPECT_EQ(message(all.subspan(0, 10), all.subspan(10, 10)), "accepted");
}

// --- Choices -------------------------------------------------------------------------------------

using ChoiceTest = course::DeviceTest;

TEST_F(ChoiceTest, AutoFollowsTheRows) {
    const auto choice = [](const CsrMatrix& csr) {
        const std::string text =
            course::find_version(versions(), "auto").launcher(csr, OffsetRule::kAsNeeded)->choice();
        return text.starts_with("packed") ? text.substr(0, text.rfind(',')) : text.substr(0, text.find(','));
    };
    EXPECT_EQ(choice(banded(140000, 3)), "packed_sell, sigma 1");
    std::vector<Index> mixed(140000);
    for (std::size_t i = 0; i < mixed.size(); ++i)
        mixed[i] = i % 2 == 0 ? 1 : 9;
    EXPECT_EQ(choice(with_lengths(mixed)), "packed_sell, sigma 1024");
    EXPECT_EQ(choice(power_law({140000, 70000}, 4)), "csr_adaptive");
    EXPECT_EQ(choice(banded(100, 3)), "csr_vectorised");
    EXPECT_EQ(choice(one_dense_row(10, 3, 5000)), "csr_adaptive");
    EXPECT_EQ(choice(with_lengths(std::vector<Index>(64, 3000))), "csr_adaptive") << "all rows are long";
    EXPECT_EQ(choice(with_lengths(std::vector<Index>(64, 500))), "csr_vectorised") << "a few steps each";
    EXPECT_EQ(choice(with_lengths(std::vector<Index>(512, 600))), "csr_vectorised") << "enough rows";
    EXPECT_EQ(choice(with_lengths(std::vector<Index>(511, 600))), "csr_adaptive");
    EXPECT_EQ(choice(one_dense_row(10, 3, 1 << 20)), "coo_segmented");
}

// A band of 27 with one longer row: it has one lane, for which all others may have to wait.
TEST_F(ChoiceTest, AutoKeepsToSlicesWhileNoRowIsLong) {
    const auto choice = [](Index longest, double sell_filling, double sorted_filling) {
        const AutoChoice made = choose({.shape = {1 << 20, 1 << 20},
                                        .entries = 27 << 20,
                                        .longest = longest,
                                        .mean = 27,
                                        .sell_filling = sell_filling,
                                        .sorted_filling = sorted_filling});
        return made.version + (", " + std::to_string(made.sigma));
    };
    EXPECT_EQ(choice(27, 1, 1), "packed_sell, 1");
    EXPECT_EQ(choice(118, 1.01, 1.01), "packed_sell, 1");
    EXPECT_EQ(choice(118, 1.16, 1.15), "packed_sell, 1024");
    EXPECT_EQ(choice(118, 1.16, 1.16), "csr_vectorised, 1");
    EXPECT_EQ(choice(119, 1.01, 1.01), "csr_adaptive, 1");

    const auto skewed = [](Offset entries) {
        return std::string(choose({.shape = {1000, 1000}, .entries = entries, .longest = 1 << 20}).version);
    };
    EXPECT_EQ(skewed((1 << 20) - 1), "csr_adaptive");
    EXPECT_EQ(skewed(1 << 20), "coo_segmented");
    EXPECT_EQ(skewed((1 << 23) - 1), "coo_segmented");
    EXPECT_EQ(skewed(1 << 23), "csr_adaptive");
}

TEST_F(ChoiceTest, SellIsRefusedWhereItWouldBeFilling) {
    const RowStatistics rows = row_statistics(one_dense_row(3000, 5, 100000));
    for (const char* name : {"sell", "packed_sell"}) {
        EXPECT_EQ(course::find_version(versions(), name).cannot_run(rows),
                  "its longest row has 100000 entries: SELL would have 3200000 places for 100000");
        EXPECT_EQ(
            course::find_version(versions(), name).cannot_run(row_statistics(one_dense_row(40, 5, 9000))), "")
            << "small anyway";
    }
}

TEST_F(ChoiceTest, WideOffsetsAreWide) {
    const CsrMatrix csr = banded(1000, 3);
    for (const char* name : {"csr_scalar", "csr_vector", "csr_vectorised", "csr_adaptive", "csr_merge"}) {
        const Spmv& version = course::find_version(versions(), name);
        EXPECT_EQ(version.launcher(csr, OffsetRule::kWide)->stored_bytes(),
                  version.launcher(csr, OffsetRule::kAsNeeded)->stored_bytes() + 4 * 1001)
            << name;
    }
}

TEST_F(ChoiceTest, DeviceCsrChecksItsArrays) {
    const auto message = []<class O>(O, std::vector<Offset> row_start, std::size_t cols,
                                     std::size_t values) -> std::string {
        try {
            DeviceCsr<O>({2, 9}, row_start, DeviceBuffer<Index>(cols), DeviceBuffer<float>(values));
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message(Offset{}, {0, 3, 5}, 8, 8), "accepted");
    EXPECT_EQ(message(Offset{}, {}, 8, 8), "DeviceCsr: row_start has 0 elements; expected 3");
    EXPECT_EQ(message(Offset{}, {0, 3, 5}, 5, 8), "DeviceCsr: cols has 5 elements; expected 8");
    EXPECT_EQ(message(Offset{}, {0, 3, 5}, 8, 5), "DeviceCsr: values has 5 elements; expected 8");
    EXPECT_EQ(message(std::int32_t{}, {0, 3, Offset{1} << 31}, 8, 8),
              "DeviceCsr: row_start ends with 2147483648; expected 0 to 2147483647");
}

TEST_F(ChoiceTest, EllIsRefusedWhereItWouldBeFilling) {
    EXPECT_EQ(
        course::find_version(versions(), "ell").cannot_run(row_statistics(one_dense_row(3000, 5, 100000))),
        "its longest row has 100000 entries: ELL would have 300000000 places for 100000");
}

// --- More entries than 32 bits count -------------------------------------------------------------

// 2^31 + 5000 entries in rows of about a million. All are 0 and in column 0, but for a few, each in
// a column of its own: a value, or a column, from a place that was counted in 32 bits is not
// theirs.
TEST_F(ChoiceTest, MoreEntriesThan32BitsCount) {
    constexpr Offset kEntries = (Offset{1} << 31) + 5000;
    constexpr Offset kRowLength = 1000003;
    if (const std::string reason = course::why_not_so_large(2 * kEntries * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    std::vector<Offset> row_start = {0};
    while (row_start.back() < kEntries)
        row_start.push_back(std::min(kEntries, row_start.back() + kRowLength));
    const auto rows = static_cast<Index>(row_start.size() - 1);
    const std::vector<float> x_host = {1, 2, 3, 5, 7, 11};
    const DeviceBuffer<float> x{std::span<const float>(x_host)};

    for (const auto& make : {csr_scalar<Offset>, csr_vector<Offset>, csr_vectorised<Offset>,
                             csr_adaptive<Offset>, csr_merge<Offset>}) {
        DeviceBuffer<Index> cols(kEntries);
        DeviceBuffer<float> values(kEntries);
        CUDA_CHECK(cudaMemset(cols.data(), 0, cols.bytes()));
        CUDA_CHECK(cudaMemset(values.data(), 0, values.bytes()));
        std::vector<double> expected(rows, 0.0);
        float value = 1;
        Index col = 1;
        for (const Offset place :
             {Offset{0}, kRowLength, (Offset{1} << 31) - 1, Offset{1} << 31, kEntries - 1}) {
            CUDA_CHECK(cudaMemcpy(values.data() + place, &value, sizeof(value), cudaMemcpyHostToDevice));
            CUDA_CHECK(cudaMemcpy(cols.data() + place, &col, sizeof(col), cudaMemcpyHostToDevice));
            expected[place / kRowLength] += static_cast<double>(value * x_host[col]);
            value *= 3;
            ++col;
        }
        const auto product =
            make(DeviceCsr<Offset>({rows, 6}, row_start, std::move(cols), std::move(values)), row_start);
        GuardedBuffer<float> y(rows);
        product->multiply(x.span(), y.span());
        const course::VerifyResult result = course::verify(y.to_host(), expected, {.factor = 0});
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

// --- On the CPU ----------------------------------------------------------------------------------

TEST(OnTheCpu, ReferenceByHand) {
    const CsrMatrix csr({3, 3}, {0, 2, 2, 3}, {0, 2, 1}, {2, -3, 5});
    const std::vector<float> x = {1, 10, 100};
    const Reference reference = multiply_on_cpu(csr, x);
    EXPECT_EQ(reference.y, (std::vector<double>{-298, 0, 50}));
    EXPECT_EQ(reference.magnitude, (std::vector<double>{0, 0, 0})) << "whole numbers: exact";
    EXPECT_EQ(multiply_on_cpu(csr, std::vector<float>{0.25f, 10, 1 << 25}).magnitude,
              (std::vector<double>{std::sqrt(2.0) * (0.5 + 3 * (1 << 25)), 0, 0}));
    EXPECT_EQ(multiply_on_cpu(csr, std::vector<float>{0, 0.3f, 8 << 20}).magnitude[0],
              std::sqrt(2.0) * 3 * (8 << 20))
        << "beyond 2^24 float rounds";
    EXPECT_EQ(multiply_on_cpu(csr, std::vector<float>{0, 0.5f, 0}).magnitude[2], 2.5);
}

}  // namespace
