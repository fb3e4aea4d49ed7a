#include "common/bench/draw.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace {

using course::Draw;

constexpr std::size_t kNoLimit = std::size_t{1} << 60;

TEST(DrawTest, BoundsAreIncludedAndNothingBeyondThem) {
    Draw draw(1, 0, kNoLimit);
    std::set<std::size_t> uniform;
    std::set<std::size_t> log_uniform;
    for (int i = 0; i < 2000; ++i) {
        uniform.insert(draw.uniform(3, 9));
        log_uniform.insert(draw.log_uniform(3, 9));
    }
    const std::set<std::size_t> all = {3, 4, 5, 6, 7, 8, 9};
    EXPECT_EQ(uniform, all);
    EXPECT_EQ(log_uniform, all);
    EXPECT_EQ(draw.uniform(5, 5), 5u);
    EXPECT_EQ(draw.log_uniform(1, 1), 1u);
    EXPECT_EQ(draw.log_uniform(7, 7), 7u);
    const std::size_t most = SIZE_MAX;
    EXPECT_NE(draw.uniform(0, most), draw.uniform(0, most));
    EXPECT_GE(draw.log_uniform(most - 1, most), most - 1);
}

TEST(DrawTest, ANumberIsAsOftenDrawnAsItsReciprocalSays) {
    constexpr std::size_t kLow = 5;
    constexpr std::size_t kHigh = 3000;
    constexpr int kDraws = 200000;
    // The first range is a single number.
    constexpr std::size_t kEnds[] = {kLow, 6, 9, 20, 64, 300, 1000, kHigh - 500, kHigh + 1};
    Draw draw(3, 0, kNoLimit);
    std::vector<int> counts(kHigh + 1);
    for (int i = 0; i < kDraws; ++i)
        ++counts[draw.log_uniform(kLow, kHigh)];
    double all = 0;
    for (std::size_t n = kLow; n <= kHigh; ++n)
        all += 1 / static_cast<double>(n);
    for (std::size_t range = 0; range + 1 < std::size(kEnds); ++range) {
        int count = 0;
        double share = 0;
        for (std::size_t n = kEnds[range]; n < kEnds[range + 1]; ++n) {
            count += counts[n];
            share += 1 / static_cast<double>(n) / all;
        }
        const double expected = kDraws * share;
        EXPECT_NEAR(count, expected, 4.5 * std::sqrt(expected)) << "from " << kEnds[range];
    }
}

TEST(DrawTest, ANarrowRangeIsDrawnFromAsFastAsAWideOne) {
    Draw draw(3, 1, kNoLimit);
    constexpr std::size_t kLow = 1000000000;
    int low = 0;
    for (int i = 0; i < 10000; ++i)
        low += draw.log_uniform(kLow, kLow + 1) == kLow ? 1 : 0;
    EXPECT_NEAR(low, 5000, 250);
}

TEST(DrawTest, TheSameSeedAndIndexDrawTheSameEverywhere) {
    Draw draw(7, 3, kNoLimit);
    EXPECT_EQ(draw.uniform(0, 999), 404u);
    EXPECT_EQ(draw.log_uniform(1, std::size_t{1} << 28), 2028698u);
    EXPECT_EQ(draw.jittered(1000), 1000u);
    EXPECT_EQ(draw.one_of({10, 20, 30}), 30);
    Draw problem(7, 4, std::size_t{1} << 30);
    const course::DrawnSize product = course::draw_product(problem);
    EXPECT_EQ(product.kind, "skinny");
    EXPECT_EQ(product.size, (std::vector<std::size_t>{7949, 33, 299}));
}

TEST(DrawTest, SeedsAndIndicesDrawDifferentProblems) {
    std::set<std::size_t> drawn;
    for (std::uint64_t seed = 0; seed < 30; ++seed)
        for (std::uint64_t index = 0; index < 30; ++index)
            drawn.insert(Draw(seed, index, kNoLimit).uniform(0, SIZE_MAX));
    EXPECT_EQ(drawn.size(), 900u);
}

TEST(DrawTest, JitterIsOddPrimeAlignedAndNeverLarger) {
    Draw draw(5, 0, kNoLimit);
    std::set<std::size_t> near;
    for (int i = 0; i < 500; ++i)
        near.insert(draw.jittered(1000));
    // As it is, odd, prime, multiples of 8 (1,000 itself), 16, ..., 512.
    EXPECT_EQ(near, (std::set<std::size_t>{512, 768, 896, 960, 992, 997, 999, 1000}));
    for (std::size_t n = 1; n < 20; ++n) {
        for (int i = 0; i < 50; ++i) {
            const std::size_t jittered = draw.jittered(n);
            EXPECT_GE(jittered, 1u) << n;
            EXPECT_LE(jittered, n) << n;
        }
    }
}

TEST(DrawTest, ExtentsAreHalvedUntilTheyFitAndOddOnesStayOdd) {
    const Draw draw(1, 0, 1000);
    using Sizes = std::vector<std::size_t>;
    EXPECT_EQ(draw.fitted({10, 100}), (Sizes{10, 100})) << "the limit itself is allowed";
    EXPECT_EQ(draw.fitted({1001}), (Sizes{501}));
    EXPECT_EQ(draw.fitted({4095, 3}), (Sizes{255, 3}));
    EXPECT_EQ(draw.fitted({4096, 3}), (Sizes{256, 3}));
    EXPECT_EQ(draw.fitted({100, 10}, 3), (Sizes{25, 10})) << "333 are left";
    EXPECT_EQ(draw.fitted({7, 2}, 1001), (Sizes{1, 1}));
    EXPECT_EQ(draw.fitted({SIZE_MAX, SIZE_MAX, 1}), (Sizes{31, 31, 1})) << "no product overflows";
    EXPECT_EQ(Draw(1, 0, 1).fitted({3, 2, 5}), (Sizes{1, 1, 1}));
}

TEST(DrawTest, EveryProblemKeepsWithinItsLimit) {
    for (const std::size_t limit : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
        for (std::uint64_t index = 0; index < 300; ++index) {
            Draw draw(9, index, limit);
            for (const course::DrawnSize& drawn : {course::draw_length(draw), course::draw_matrix(draw),
                                                   course::draw_product(draw), course::draw_batch(draw)}) {
                std::size_t product = 1;
                for (const std::size_t extent : drawn.size)
                    product *= extent;
                EXPECT_GE(product, 1u) << drawn.kind;
                EXPECT_LE(product, limit) << drawn.kind;
            }
        }
    }
}

TEST(DrawTest, ProductsOfMultiplesKeepWithinTheirLimit) {
    for (const std::size_t multiple : {std::size_t{8}, std::size_t{16}}) {
        for (std::uint64_t index = 0; index < 300; ++index) {
            Draw draw(9, index, 1 << 16);
            const course::DrawnSize drawn = course::draw_product(draw, multiple);
            std::size_t product = 1;
            for (const std::size_t extent : drawn.size) {
                EXPECT_EQ(extent % multiple, 0u) << drawn.kind;
                product *= extent;
            }
            EXPECT_GE(product, multiple * multiple * multiple) << drawn.kind;
            EXPECT_LE(product, 1u << 16) << drawn.kind;
        }
    }
}

TEST(DrawTest, AttentionKeepsWithinItsLimitByItsTokensSquared) {
    std::set<std::string> kinds;
    for (std::uint64_t index = 0; index < 300; ++index) {
        Draw draw(13, index, 1 << 20);
        const course::DrawnSize drawn = course::draw_attention(draw);
        kinds.insert(drawn.kind);
        ASSERT_EQ(drawn.size.size(), 4u);
        for (const std::size_t extent : drawn.size)
            EXPECT_GE(extent, 1u) << drawn.kind;
        EXPECT_LE(drawn.size[0] * drawn.size[1] * drawn.size[2] * drawn.size[2] * drawn.size[3], 1u << 20)
            << drawn.kind;
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"any", "one long sequence", "short sequences"}));
    Draw smallest(1, 0, 1);
    EXPECT_EQ(course::draw_attention(smallest).size[2], 1u) << "at least one token";
}

TEST(DrawTest, AllKindsOfProductsAreDrawn) {
    std::set<std::string> kinds;
    for (std::uint64_t index = 0; index < 200; ++index) {
        Draw draw(11, index, std::size_t{1} << 38);
        const course::DrawnSize drawn = course::draw_product(draw, 16);
        kinds.insert(drawn.kind);
        for (const std::size_t extent : drawn.size)
            EXPECT_EQ(extent % 16, 0u) << drawn.kind;
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"any", "language layer", "odd", "skinny", "thin with a deep K",
                                            "tiny", "vision layer"}));
}

}  // namespace
