// The worked example: nearest neighbours of real-valued and of whole-numbered vectors, and how they
// are compared.
#include "nearest_neighbours.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::refusal;
using day48::Neighbours;

using NearestNeighboursTest = course::DeviceTest;

TEST_F(NearestNeighboursTest, WholeNumbers) {
    course::Random random(11);
    SCOPED_TRACE("course::Random seed 11");
    constexpr std::size_t kD = 5;
    std::vector<float> queries(9 * kD);
    std::vector<float> points(1200 * kD);
    for (float& x : queries)
        x = static_cast<float>(random.below(4));
    for (float& x : points)
        x = static_cast<float>(random.below(4));
    const Neighbours found = day48::nearest_neighbours(queries, points, kD, 20);
    const Neighbours nearest = day48::nearest_neighbours_on_cpu(queries, points, kD, 20);
    EXPECT_EQ(found.indices, nearest.indices);
    EXPECT_EQ(found.squared_distances, nearest.squared_distances);
    EXPECT_EQ(day48::recall(found, nearest), 1);
}

TEST_F(NearestNeighboursTest, RealNumbers) {
    constexpr std::size_t kD = 16;
    const auto queries = course::make_data<float>(30 * kD, course::DataPattern::kNormal, 1);
    const auto points = course::make_data<float>(2000 * kD, course::DataPattern::kNormal, 2);
    const Neighbours found = day48::nearest_neighbours(queries, points, kD, 10);
    const Neighbours nearest = day48::nearest_neighbours_on_cpu(queries, points, kD, 10);
    EXPECT_EQ(found.k, 10u);
    EXPECT_EQ(day48::recall(found, nearest), 1);
    ASSERT_EQ(found.squared_distances.size(), nearest.squared_distances.size());
    for (std::size_t i = 0; i < nearest.squared_distances.size(); ++i)
        EXPECT_NEAR(found.squared_distances[i], nearest.squared_distances[i], 1e-4) << i;
}

TEST(NearestNeighbours, Recall) {
    const Neighbours nearest{2, {1, 2, 3, 4}, {}};
    EXPECT_EQ(day48::recall({2, {2, 1, 3, 4}, {}}, nearest), 1);
    EXPECT_EQ(day48::recall({2, {1, 3, 2, 4}, {}}, nearest), 0.5);
    EXPECT_EQ(day48::recall({3, {1, 3, 2, 4, 5, 6}, {}}, nearest), 0.75);
    EXPECT_EQ(day48::recall({}, {}), 1);
    EXPECT_EQ(refusal([&] {
                  day48::recall({2, {1, 2}, {}}, nearest);
              }),
              "recall: there are 2 indices found, 2 for each query, and 2 queries; expected as many queries");
}

TEST_F(NearestNeighboursTest, RefusesBadArguments) {
    const std::vector<float> numbers(10);
    EXPECT_EQ(
        refusal([&] { day48::nearest_neighbours(numbers, numbers, 3, 1); }),
        "nearest_neighbours: queries has 10 numbers and d is 3; expected whole vectors of d, at least 1");
    EXPECT_EQ(
        refusal([&] { day48::nearest_neighbours(numbers, numbers, 0, 1); }),
        "nearest_neighbours: queries has 10 numbers and d is 0; expected whole vectors of d, at least 1");
    EXPECT_EQ(refusal([&] { day48::nearest_neighbours(numbers, numbers, 5, 3); }),
              "top-k matmul: k is 3, but there are 2 columns of op(B) to choose from; expected at most as "
              "many");
    EXPECT_EQ(refusal([&] { day48::nearest_neighbours(numbers, numbers, 5, std::size_t{1} << 40); }),
              "top-k matmul: k is 1099511627776; expected 1 to 1024");
    EXPECT_EQ(refusal([&] { day48::nearest_neighbours_on_cpu(numbers, numbers, 5, 3); }),
              "nearest_neighbours_on_cpu: k is 3 and there are 2 points; expected at most as many");
}

}  // namespace
