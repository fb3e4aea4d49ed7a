// Every product with a sparse vector against the CPU: whole numbers exactly, floats within the
// guaranteed bound.
#include "beyond/spmspv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "test_matrices.hpp"

namespace {

using namespace day35;
using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;

constexpr float kInf = std::numeric_limits<float>::infinity();

// `entries` columns anywhere, in any order, some of them twice, with whole values.
SparseVector any_columns(Index cols, Index entries, std::uint64_t seed) {
    course::Random random(seed);
    SparseVector x;
    if (cols == 0) return x;
    for (Index i = 0; i < entries; ++i)
        x.cols.push_back(static_cast<Index>(random.below(static_cast<std::uint32_t>(cols))));
    x.values = whole_numbers(x.cols.size(), seed);
    return x;
}

// All columns, the last one first.
SparseVector all_columns(Index cols) {
    SparseVector x;
    x.cols.resize(cols);
    std::iota(x.cols.rbegin(), x.cols.rend(), 0);
    x.values = whole_numbers(x.cols.size(), 9);
    return x;
}

std::vector<SparseVector> vectors_for(Index cols) {
    return {{},
            any_columns(cols, 1, 1),
            any_columns(cols, cols / 50 + 1, 2),
            any_columns(cols, 33, 3),
            {},
            all_columns(cols),
            any_columns(cols, 1, 4)};
}

class SparseVectorTest : public course::DeviceTestWithParam<const Spmspv*> {
  protected:
    // A matrix on the device with its outputs, for several vectors one after the other: what a
    // product leaves behind in the work space must not matter to the next one.
    class Products {
      public:
        explicit Products(const CsrMatrix& csr)
            : csr_(csr),
              product_(GetParam()->launcher(csr)),
              values_(csr.shape().rows),
              rows_(csr.shape().rows),
              count_(1) {}

        void expect_right(const SparseVector& x) {
            const SparseReference expected = multiply_on_cpu(csr_, x);
            const DeviceBuffer<Index> x_cols{std::span(x.cols)};
            const DeviceBuffer<float> x_values{std::span(x.values)};
            values_.spoil();
            rows_.spoil();
            count_.spoil();
            const SparseX on_device{x_cols.span(), x_values.span()};
            const course::Bound bound{.factor = 1};
            if (!product_->has_sparse_y()) {
                product_->multiply(on_device, values_.span());
                const course::VerifyResult same =
                    course::verify(values_.to_host(), expected.y, bound, expected.magnitude);
                EXPECT_TRUE(same.ok()) << "y: " << same.message();
            } else {
                product_->multiply(on_device, SparseY{rows_.span(), values_.span(), count_.span()});
                expect_sparse(expected, bound);
            }
            EXPECT_EQ(values_.damage() + rows_.damage() + count_.damage(), "");
        }

      private:
        void expect_sparse(const SparseReference& expected, const course::Bound& bound) {
            const Index count = count_.to_host()[0];
            ASSERT_EQ(count, expected.work.met_rows) << "number of rows in y";
            std::vector<Index> rows = rows_.to_host();
            rows.resize(count);
            const course::VerifyResult same_rows =
                course::verify_exact(rows, std::span<const Index>(expected.met_rows));
            ASSERT_TRUE(same_rows.ok()) << "rows of y: " << same_rows.message();
            std::vector<float> values = values_.to_host();
            values.resize(count);
            std::vector<double> y;
            std::vector<double> magnitude;
            for (const Index row : expected.met_rows) {
                y.push_back(expected.y[row]);
                magnitude.push_back(expected.magnitude[row]);
            }
            const course::VerifyResult same = course::verify(values, y, bound, magnitude);
            EXPECT_TRUE(same.ok()) << "values of y: " << same.message();
        }

        CsrMatrix csr_;
        std::unique_ptr<SparseProduct> product_;
        GuardedBuffer<float> values_;
        GuardedBuffer<Index> rows_;
        GuardedBuffer<Index> count_;
    };

    static void expect_right(const CsrMatrix& csr, const std::vector<SparseVector>& vectors) {
        Products products(csr);
        for (const SparseVector& x : vectors) {
            SCOPED_TRACE("x number " + std::to_string(&x - vectors.data()) + ", of " +
                         std::to_string(x.cols.size()) + " entries");
            products.expect_right(x);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Day35, SparseVectorTest, course::each_of(sparse_vector_versions()),
                         course::VersionName());

// Empty rows and columns, no rows or columns at all, entries and columns that come twice.
TEST_P(SparseVectorTest, WholeNumbersExactly) {
    for (const auto& [name, csr] : awkward_matrices()) {
        SCOPED_TRACE(name);
        expect_right(with_whole_values(csr), vectors_for(csr.shape().cols));
    }
}

// Words of the bitmap, warps and blocks of words, and one more than the scan takes in a step.
TEST_P(SparseVectorTest, RowsAroundWordsAndWarps) {
    for (const Index rows : {31, 32, 33, 1023, 1024, 1025, 8191, 8192, 8193, (1 << 20) + 1}) {
        SCOPED_TRACE(std::to_string(rows) + " rows");
        // The last row, the first, and two in the middle, of a word each.
        std::vector<Index> at = {0, rows / 2, rows / 2 + 1, rows - 1};
        std::sort(at.begin(), at.end());
        at.erase(std::unique(at.begin(), at.end()), at.end());
        std::vector<Offset> start(rows + 1, 0);
        for (const Index row : at)
            ++start[row + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<Index> cols(at.size());
        std::iota(cols.begin(), cols.end(), 0);
        const CsrMatrix csr({rows, 4}, start, cols, {2, -3, 5, 7});
        expect_right(csr, {all_columns(4), {{3}, {1}}, {{1, 2}, {1, 1}}, {{0}, {1}}});
    }
}

// The row stays in a sparse y, with 0.
TEST_P(SparseVectorTest, SumsThatCancelAndProductsOfZero) {
    const CsrMatrix csr({3, 4}, {0, 2, 3, 4}, {0, 1, 2, 3}, {2, -2, 5, 0});
    expect_right(csr, {{{0, 1}, {3, 3}}, {{2}, {0}}, {{3, 2}, {7, 1}}, {{2, 2}, {4, -4}}});
}

TEST_P(SparseVectorTest, ColumnsThatComeTwiceAddUp) {
    const CsrMatrix csr = with_whole_values(power_law({300, 2000}, 8));
    SparseVector x = any_columns(2000, 100, 5);
    const SparseVector once = x;
    x.cols.insert(x.cols.end(), once.cols.rbegin(), once.cols.rend());
    x.values.insert(x.values.end(), once.values.begin(), once.values.end());
    expect_right(csr, {x});
}

TEST_P(SparseVectorTest, FloatPatterns) {
    for (const auto& csr : {laplacian_2d(20), power_law({500, 4000}, 9), node_blocks(3, 3)}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kWithNan, DataPattern::kWithInf}) {
            SCOPED_TRACE(std::string(course::name(pattern)) + ", " + std::to_string(csr.entries()) +
                         " entries");
            SparseVector x = any_columns(csr.shape().cols, csr.shape().cols / 3, 6);
            x.values = course::make_data<float>(x.cols.size(), pattern, 35);
            expect_right(csr, {x, any_columns(csr.shape().cols, 20, 7)});
        }
    }
}

// Columns that are no entry of x are not multiplied, not even an infinite x of another product.
TEST_P(SparseVectorTest, InfinityStaysInItsColumns) {
    const CsrMatrix csr = with_whole_values(banded(200, 5));
    expect_right(csr, {{{7, 100}, {kInf, 1}}, {{8, 199}, {2, -kInf}}, {{6}, {1}}});
}

TEST_P(SparseVectorTest, RandomMatricesAndVectors) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        course::Random random(seed * 77);
        const Shape shape{random.integer(0, 3000), random.integer(1, 700)};
        const Index entries = random.integer(0, 900);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(shape.rows) + " x " +
                     std::to_string(shape.cols) + ", x of " + std::to_string(entries) + " entries");
        expect_right(
            with_whole_values(random_matrix(shape, random.integer(0, 60), seed)),
            {any_columns(shape.cols, entries, seed), any_columns(shape.cols, entries / 9, seed + 1)});
    }
}

TEST_P(SparseVectorTest, RunsOnTheGivenStream) {
    const CsrMatrix csr = with_whole_values(power_law({400, 9000}, 8));
    const auto product = GetParam()->launcher(csr);
    const SparseVector x = any_columns(9000, 500, 4);
    const DeviceBuffer<Index> x_cols{std::span(x.cols)};
    const DeviceBuffer<float> x_values{std::span(x.values)};
    GuardedBuffer<float> values(400);
    GuardedBuffer<Index> rows(400);
    GuardedBuffer<Index> count(1);
    const SparseX on_device{x_cols.span(), x_values.span()};
    const course::CapturedWork work([&](cudaStream_t stream) {
        if (product->has_sparse_y()) {
            product->multiply(on_device, SparseY{rows.span(), values.span(), count.span()}, stream);
        } else {
            product->multiply(on_device, values.span(), stream);
        }
    });
    const std::string& name = GetParam()->name;
    const std::size_t expected = name == "sparse_y" ? 4 : name == "dense_x" ? 3 : 2;
    EXPECT_EQ(work.nodes(), expected) << "something was queued on another stream";
}

using SparseVectorArguments = course::DeviceTest;

TEST_F(SparseVectorArguments, AreChecked) {
    const auto dense = course::find_version(sparse_vector_versions(), "columns").launcher(banded(10, 3));
    const auto sparse = course::find_version(sparse_vector_versions(), "sparse_y").launcher(banded(10, 3));
    auto floats = course::zeros<float>(64);
    auto numbers = course::zeros<Index>(64);
    const auto f = [&](std::size_t at, std::size_t size) { return floats.span().subspan(at, size); };
    const auto n = [&](std::size_t at, std::size_t size) { return numbers.span().subspan(at, size); };
    const auto of_dense = [&](const SparseX& x, course::DeviceSpan<float> y) {
        return course::refusal([&] { dense->multiply(x, y); });
    };
    const auto of_sparse = [&](const SparseX& x, const SparseY& y) {
        return course::refusal([&] { sparse->multiply(x, y); });
    };
    const SparseX x{n(0, 5), f(0, 5)};
    EXPECT_EQ(of_dense(x, f(20, 10)), "");
    EXPECT_EQ(of_dense({n(0, 5), f(0, 4)}, f(20, 10)),
              "spmspv: x has 5 columns and 4 values; expected as many of both");
    EXPECT_EQ(of_dense(x, f(20, 9)), "spmspv: y has 9 elements; expected 10, for a matrix of 10 x 10");
    EXPECT_EQ(of_dense(x, f(4, 10)), "spmspv: y overlaps the values of x; expected memory of its own");
    EXPECT_EQ(of_sparse(x, {n(20, 10), f(20, 10), n(30, 1)}), "");
    EXPECT_EQ(of_sparse(x, {n(20, 9), f(20, 10), n(30, 1)}),
              "spmspv: y.rows has 9 elements; expected 10, for a matrix of 10 x 10");
    EXPECT_EQ(of_sparse(x, {n(20, 10), f(20, 11), n(30, 1)}),
              "spmspv: y.values has 11 elements; expected 10, for a matrix of 10 x 10");
    EXPECT_EQ(of_sparse(x, {n(20, 10), f(20, 10), n(30, 2)}),
              "spmspv: y.count has 2 elements; expected 1, for a matrix of 10 x 10");
    EXPECT_EQ(of_sparse(x, {n(20, 10), f(4, 10), n(30, 1)}),
              "spmspv: y.values overlaps the values of x; expected memory of its own");
    EXPECT_EQ(
        of_sparse(x, {n(20, 10), f(20, 10), n(29, 1)}),
        "spmspv: y.rows or y.count overlaps the columns of x or each other; expected memory of its own");
    EXPECT_EQ(course::refusal([&] { sparse->multiply(x, f(20, 10)); }),
              "spmspv: y is dense; expected rows, values and a count, for a version whose result is sparse");
    EXPECT_EQ(course::refusal([&] {
                  dense->multiply(x, {n(20, 10), f(20, 10), n(30, 1)});
              }),
              "spmspv: y is sparse; expected 10 floats, for a version whose result is dense");
    const auto without_columns =
        course::find_version(sparse_vector_versions(), "columns").launcher(from_rows(0, {{}, {}}));
    EXPECT_EQ(course::refusal([&] { without_columns->multiply(x, f(20, 2)); }),
              "spmspv: x has 5 entries; expected 0, for a matrix of 2 x 0");
}

TEST(SparseVectorOnTheCpu, ReferenceByHand) {
    const CsrMatrix csr({3, 3}, {0, 2, 2, 3}, {0, 2, 1}, {2, -3, 5});
    const SparseReference reference = multiply_on_cpu(csr, SparseVector{{2, 0, 2}, {1, 10, 0.5f}});
    EXPECT_EQ(reference.y, (std::vector<double>{15.5, 0, 0}));
    EXPECT_EQ(reference.magnitude, (std::vector<double>{(20 + 3 + 1.5) * 2, 0, 0}));
    EXPECT_EQ(reference.met_rows, std::vector<Index>{0});
    EXPECT_EQ(reference.work.x_entries, 3);
    EXPECT_EQ(reference.work.met_entries, 3);
    EXPECT_EQ(multiply_on_cpu(csr, SparseVector{{2, 0}, {1, 10}}).magnitude, (std::vector<double>{0, 0, 0}))
        << "whole numbers: exact";
}

}  // namespace
