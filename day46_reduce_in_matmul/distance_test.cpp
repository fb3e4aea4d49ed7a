// The norms that distances take, alone: in a fused product a wrong norm may hide behind a
// tolerance.
#include "common/tile/distance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::Metric;
using course::Op;

constexpr std::size_t kDepth =
    40;  // whole packs: nothing lies between the last vector and the end of its memory
constexpr std::size_t kCount = 2;

// kCount matrices of `vectors` vectors, one vector after the other; the last vector of each is 0.
std::vector<float> vectors_of(std::size_t vectors, std::uint64_t seed) {
    auto values = course::make_data<float>(kCount * vectors * kDepth, course::DataPattern::kNormal, seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i / kDepth % vectors == vectors - 1) values[i] = 0;
    }
    return values;
}

// The same matrices with vectors that are columns.
std::vector<float> as_columns(const std::vector<float>& rows, std::size_t vectors) {
    std::vector<float> columns(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t in_matrix = i % (vectors * kDepth);
        columns[i - in_matrix + in_matrix % kDepth * vectors + in_matrix / kDepth] = rows[i];
    }
    return columns;
}

// In the order in which launch_norms() writes them.
void append_norms(std::vector<double>& norms, Metric metric, const std::vector<float>& vectors) {
    for (std::size_t begin = 0; begin < vectors.size(); begin += kDepth) {
        double squared = 0;
        for (std::size_t k = 0; k < kDepth; ++k)
            squared += static_cast<double>(vectors[begin + k]) * static_cast<double>(vectors[begin + k]);
        const double inverse = squared == 0 ? 0 : 1 / std::sqrt(squared);
        norms.push_back(metric == Metric::kCosine ? inverse : squared);
    }
}

using NormsTest = course::DeviceTest;

// A warp takes four vectors: full and partly filled warps, and blocks. The buffer of the norms has
// no element to spare, and the operands end where their memory ends.
TEST_F(NormsTest, OfEveryVectorAndOfNothingBehindTheLast) {
    for (const Metric metric : {Metric::kSquaredL2, Metric::kCosine}) {
        for (const bool of_rows : {true, false}) {
            for (const std::size_t vectors : {1, 3, 4, 5, 31, 33}) {
                SCOPED_TRACE(course::name(metric) + (of_rows ? " of " : " of columns, ") +
                             std::to_string(vectors) + " vectors");
                const std::vector<float> a = vectors_of(vectors, 1);
                const std::vector<float> b = vectors_of(vectors + 1, 2);
                const DeviceBuffer<float> a_device{
                    std::span<const float>(of_rows ? a : as_columns(a, vectors))};
                const DeviceBuffer<float> b_device{
                    std::span<const float>(of_rows ? b : as_columns(b, vectors + 1))};
                const auto batch = [&](const DeviceBuffer<float>& memory, std::size_t count) {
                    const auto first = memory.span().subspan(0, count * kDepth);
                    return course::Batch<const float>{
                        .first = of_rows ? course::DeviceMatrix<const float>(first, count, kDepth)
                                         : course::DeviceMatrix<const float>(first, kDepth, count),
                        .count = kCount,
                        .stride = count * kDepth};
                };
                std::vector<double> expected;
                append_norms(expected, metric, a);
                append_norms(expected, metric, b);
                course::GuardedBuffer<float> norms(course::norms_size(metric, vectors, vectors + 1, kCount));
                ASSERT_EQ(norms.size(), expected.size());

                course::launch_norms(metric,
                                     course::Operands{.a = batch(a_device, vectors),
                                                      .b = batch(b_device, vectors + 1),
                                                      .op_a = of_rows ? Op::kNone : Op::kTranspose,
                                                      .op_b = of_rows ? Op::kTranspose : Op::kNone},
                                     norms.span(), nullptr);

                // All terms of a sum are positive, so the norm itself is the magnitude.
                course::VerifyResult result =
                    course::verify(norms.to_host(), expected, {.terms = kDepth}, expected);
                result.damage = norms.damage();
                EXPECT_TRUE(result.ok()) << result.message();
            }
        }
    }
}

TEST_F(NormsTest, OnlyTwoMetricsHaveThem) {
    EXPECT_EQ(course::norms_size(Metric::kDot, 3, 5, 2), 0u);
    EXPECT_EQ(course::norms_size(Metric::kDifferences, 3, 5, 2), 0u);
    EXPECT_EQ(course::norms_size(Metric::kSquaredL2, 3, 5, 2), 16u);
    EXPECT_EQ(course::norms_size(Metric::kCosine, 3, 5, 2), 16u);
}

}  // namespace
