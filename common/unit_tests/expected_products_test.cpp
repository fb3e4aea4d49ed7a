// The expected values of a benchmark must be the same on the host and on the device.
#include "common/check/expected_products.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/matmul_reference.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::ProductShape;

class ExpectedProductsTest : public course::DeviceTestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Common, ExpectedProductsTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "OnTheHost" : "OnTheDevice"; });

TEST_P(ExpectedProductsTest, TakesWhatTheReferenceSaysAndNothingElse) {
    const ProductShape s{3, 20, 30, 11};
    const std::size_t in_product = s.m * s.n;
    const auto a = course::make_data<float>(s.count * s.m * s.k, DataPattern::kNormal, 1);
    const auto b = course::make_data<float>(s.count * s.k * s.n, DataPattern::kNormal, 2);
    std::vector<std::uint8_t> of_one(in_product);  // up to the diagonal
    for (std::size_t e = 0; e < in_product; ++e)
        of_one[e] = e % s.n <= e / s.n ? 1 : 0;
    std::vector<std::uint8_t> of_all(s.count * in_product, 1);
    for (std::size_t e = 0; e < of_all.size(); e += 7)
        of_all[e] = 0;
    for (const auto& keep : {std::vector<std::uint8_t>(in_product, 1), of_one, of_all}) {
        for (const float fill : {-std::numeric_limits<float>::infinity(), 0.0f}) {
            SCOPED_TRACE(fill);
            course::ExpectedProducts expected(s, 0.5f, a, b, GetParam());
            expected.fill_dropped(keep, fill);
            std::vector<double> product(s.count * in_product);
            std::vector<double> magnitude(product.size());
            course::multiply_batch_on_cpu(s.count, s.m, s.n, s.k, 0.5f, a, b, 0, product, magnitude);
            std::vector<float> right(product.size());
            for (std::size_t e = 0; e < right.size(); ++e)
                right[e] = keep[e % keep.size()] != 0 ? static_cast<float>(product[e]) : fill;
            course::GuardedBuffer<float> c(right.size());
            EXPECT_EQ(expected.verify(c).untouched, right.size());
            c.copy_from(right);
            EXPECT_TRUE(expected.verify(c).ok()) << expected.verify(c).message();
            for (const std::size_t where : {std::size_t{1}, in_product + 5, right.size() - 1}) {
                // A dropped element has no rounding error, so any other value is wrong, however
                // close to 0.
                std::vector<float> wrong = right;
                wrong[where] = keep[where % keep.size()] != 0 ? wrong[where] + 1e-4f : 1e-7f;
                c.copy_from(wrong);
                EXPECT_EQ(expected.verify(c).differing, 1u) << where;
            }
            c.copy_from(right);
            CUDA_CHECK(cudaMemset(c.data() + c.size(), 0, 4));
            EXPECT_FALSE(expected.verify(c).ok()) << "the guard behind it is damaged";
        }
    }
    course::ExpectedProducts expected(s, 1, a, b, GetParam());
    EXPECT_EQ(course::refusal([&] { expected.fill_dropped(std::vector<std::uint8_t>(7), 0); }),
              "fill_dropped: keep has 7 elements; expected 600 or 1800, one for each element of one or all "
              "products");
}

TEST(EachTransposed, OfSeveralMatrices) {
    EXPECT_EQ(course::each_transposed(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, 3),
              (std::vector<float>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}));
    EXPECT_EQ(course::each_transposed({}, 0, 3), std::vector<float>());
}

}  // namespace
