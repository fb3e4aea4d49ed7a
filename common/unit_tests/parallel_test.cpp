// Loops on several cores must give the same results as on one, also at the boundaries between the
// parts of two cores.
#include "common/check/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using course::kParallelPart;

const std::vector<std::size_t> kLengths = {
    0, 1, kParallelPart - 1, kParallelPart, kParallelPart + 1, 3 * kParallelPart + 5};

TEST(Parallel, EachIndexOnce) {
    for (const std::size_t n : kLengths) {
        std::vector<int> seen(n);
        course::for_each_index(n, [&](std::size_t i) { ++seen.at(i); });
        EXPECT_EQ(std::ranges::count(seen, 1), n);
    }
}

TEST(Parallel, RunningSums) {
    for (const std::size_t n : kLengths) {
        std::vector<std::size_t> sums(n);
        const std::size_t all = course::for_each_sum<std::size_t>(
            n, [](std::size_t i) { return i % 7; }, [&](std::size_t i, std::size_t sum) { sums[i] = sum; });
        std::size_t expected = 0;
        for (std::size_t i = 0; i < n; ++i)
            ASSERT_EQ(sums[i], expected += i % 7) << i << " of " << n;
        EXPECT_EQ(all, expected);
    }
}

TEST(Parallel, SortedNumbers) {
    for (const std::size_t n : kLengths) {
        const std::vector<std::uint32_t> numbers = course::sorted_numbers(n, 1);
        ASSERT_EQ(numbers.size(), n);
        EXPECT_TRUE(std::ranges::is_sorted(numbers));
        if (n < 1000) continue;
        EXPECT_NE(numbers, course::sorted_numbers(n, 2));
        // The first and the last tenth of the range contain about a tenth of all numbers each.
        const auto low = std::ranges::lower_bound(numbers, 0x1999999aU) - numbers.begin();
        const auto high = std::ranges::lower_bound(numbers, 0xe6666666U) - numbers.begin();
        const auto tenth = static_cast<double>(n) / 10;
        EXPECT_NEAR(static_cast<double>(low), tenth, tenth / 10);
        EXPECT_NEAR(static_cast<double>(high), 9 * tenth, tenth / 10);
    }
}

}  // namespace
