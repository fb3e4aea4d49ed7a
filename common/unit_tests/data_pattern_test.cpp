#include "common/check/data_pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace {

using course::DataPattern;
using course::make_data;

constexpr std::uint64_t kSeed = 2024;
constexpr std::size_t kSize = 4001;

TEST(DataPattern, SameSeedSameDataOtherSeedOther) {
    EXPECT_EQ(make_data<float>(kSize, DataPattern::kNormal, kSeed),
              make_data<float>(kSize, DataPattern::kNormal, kSeed));
    EXPECT_NE(make_data<float>(kSize, DataPattern::kNormal, kSeed),
              make_data<float>(kSize, DataPattern::kNormal, kSeed + 1));
}

// Several cores must produce the same numbers as one, also at the boundaries between the parts of
// two cores.
TEST(DataPattern, IsOneSequence) {
    constexpr std::size_t kLong = 3 * 65536 + 17;
    for (const DataPattern pattern : {DataPattern::kSignedUniform, DataPattern::kNormal,
                                      DataPattern::kAllEqual, DataPattern::kHugeNextToTiny}) {
        course::Random random(kSeed);
        std::vector<float> expected(kLong);
        for (float& value : expected)
            value = static_cast<float>(course::draw_real(pattern, 30, random));
        EXPECT_EQ(make_data<float>(kLong, pattern, kSeed), expected) << name(pattern);
    }
}

TEST(DataPattern, SignedUniformHasBothSigns) {
    const std::vector<float> values = make_data<float>(kSize, DataPattern::kSignedUniform, kSeed);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_LT(*low, -0.9f);
    EXPECT_GT(*high, 0.9f);
}

TEST(DataPattern, SortedAndReversedAre) {
    const std::vector<double> up = make_data<double>(kSize, DataPattern::kSorted, kSeed);
    EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
    const std::vector<int> down = make_data<int>(kSize, DataPattern::kReversed, kSeed);
    EXPECT_TRUE(std::is_sorted(down.rbegin(), down.rend()));
    EXPECT_NE(down.front(), down.back());
}

TEST(DataPattern, AllEqualIsOneValue) {
    const std::vector<float> values = make_data<float>(kSize, DataPattern::kAllEqual, kSeed);
    EXPECT_EQ(std::set<float>(values.begin(), values.end()).size(), 1u);
}

TEST(DataPattern, HugeNextToTinySpansManyMagnitudes) {
    const std::vector<float> values = make_data<float>(kSize, DataPattern::kHugeNextToTiny, kSeed);
    const auto huge = std::count_if(values.begin(), values.end(), [](float x) { return std::abs(x) > 1e6f; });
    const auto tiny =
        std::count_if(values.begin(), values.end(), [](float x) { return std::abs(x) < 1e-6f; });
    EXPECT_GT(huge, 1000);
    EXPECT_GT(tiny, 1000);
}

TEST(DataPattern, NanAndInfAppearAmongNumbers) {
    const std::vector<float> nans = make_data<float>(kSize, DataPattern::kWithNan, kSeed);
    const auto nan_count = std::count_if(nans.begin(), nans.end(), [](float x) { return std::isnan(x); });
    EXPECT_NEAR(static_cast<double>(nan_count), kSize / 16.0, 60);

    const std::vector<float> infs = make_data<float>(kSize, DataPattern::kWithInf, kSeed);
    EXPECT_GT(std::count(infs.begin(), infs.end(), HUGE_VALF), 50);
    EXPECT_GT(std::count(infs.begin(), infs.end(), -HUGE_VALF), 50);
    EXPECT_THROW(make_data<int>(1, DataPattern::kWithNan, kSeed), std::invalid_argument);
}

TEST(DataPattern, IntegersStayWithinTheirType) {
    for (const DataPattern pattern : course::kFinitePatterns) {
        const auto bytes = make_data<unsigned char>(kSize, pattern, kSeed);
        EXPECT_LE(*std::max_element(bytes.begin(), bytes.end()), 254) << name(pattern);
        const auto ints = make_data<int>(kSize, pattern, kSeed);
        const auto [low, high] = std::minmax_element(ints.begin(), ints.end());
        EXPECT_TRUE(*low >= -1000 && *high <= 1000) << name(pattern);
    }
}

TEST(DataPattern, EachHasItsName) {
    std::set<std::string_view> names;
    for (const DataPattern pattern : course::kFinitePatterns)
        names.insert(name(pattern));
    names.insert(name(DataPattern::kWithNan));
    names.insert(name(DataPattern::kWithInf));
    EXPECT_EQ(names.size(), 8u);
    EXPECT_THROW(name(static_cast<DataPattern>(99)), std::invalid_argument);
}

}  // namespace
