// Every version of attention on Hopper against the reference, row by row.
#include "hopper_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/attention_test.hpp"
#include "common/test/device_test.hpp"

namespace {

using namespace course::attention;
using course::Growth;
using course::refusal;

// A version and the type it is for.
template <class T, int INDEX>
struct Listed {
    using Type = T;
    static const Version<T>& version() { return day43::versions<T>()[INDEX]; }
    static Precision precision() { return tensor_core_precision<T>(); }
};

using Versions = testing::Types<Listed<__half, 0>, Listed<__half, 1>, Listed<__half, 2>, Listed<__half, 3>,
                                Listed<__half, 4>, Listed<__nv_bfloat16, 4>, Listed<__half, 5>,
                                Listed<__half, 6>, Listed<__nv_bfloat16, 7>>;
TYPED_TEST_SUITE(FusedTest, Versions, VersionName);

// Around a warp's 16 rows, a warpgroup's 64, a block's 128 or 192, and a tile of 128 keys; three
// tiles of keys reuse a stage.
TYPED_TEST(FusedTest, Lengths) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{1, 1}, Lengths{15, 17}, Lengths{64, 128}, Lengths{65, 129}, Lengths{127, 127},
          Lengths{130, 400}, Lengths{193, 257}, Lengths{257, 100}}) {
        for (const bool causal : {false, true})
            this->expect_right({.length_q = length_q, .length_k = length_k, .dim = 40, .causal = causal});
    }
    this->expect_right({.length_q = 131, .length_k = 300, .dim = 128, .causal = true});
}

TYPED_TEST(FusedTest, HeadDimensions) {
    for (const std::size_t dim : {8, 16, 56, 64, 72, 120, 128})
        this->expect_right({.length_q = 70, .length_k = 140, .dim = dim, .causal = dim % 16 == 0});
}

TYPED_TEST(FusedTest, BatchesAndGroupsOfHeads) {
    this->expect_right({2, 6, 1, 33, 65, 32, false});
    this->expect_right({2, 6, 2, 33, 65, 32, true});
    this->expect_right({3, 4, 4, 140, 20, 72, true});
}

// Rows that TMA can address: multiples of 16 bytes. Between rows of Q, K and V there are NaN.
TYPED_TEST(FusedTest, Strides) {
    const Shape shape{2, 2, 1, 35, 140, 40, true};
    for (const std::size_t offset : {0, 8}) {
        for (const bool heads_in_a_row : {false, true}) {
            const Layout layout{offset, 8, heads_in_a_row};
            this->expect_right(shape, layout, {});
            this->expect_right(shape, {}, layout);
        }
    }
}

TYPED_TEST(FusedTest, RandomShapes) {
    course::Random random(kSeed);
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    for (int round = 0; round < 6; ++round) {
        const std::size_t heads_kv = 1 + random.below(2);
        const Shape shape{1 + random.below(2),
                          heads_kv * (1 + random.below(3)),
                          heads_kv,
                          1 + random.below(250),
                          1 + random.below(300),
                          8 * (1 + random.below(16)),
                          random.below(2) == 1};
        this->expect_right(shape, {8 * random.below(2), 8 * random.below(2), random.below(2) == 1},
                           {8 * random.below(2), 8 * random.below(2), random.below(2) == 1});
    }
}

// Scores of +-100 and of +-10000: one key of a row gets nearly all the weight. With a mask, rows
// meet tiles of which they see no key before they meet their own.
TYPED_TEST(FusedTest, LargeScores) {
    using T = typename TypeParam::Type;
    for (const bool causal : {false, true}) {
        const Shape shape{1, 1, 1, 140, 300, 64, causal};
        for (const float scale : {1.0f, 1000.0f})
            this->expect_right(shape, tensors<T>(shape), scale, Growth::kLinear);
    }
    const Shape square{1, 1, 1, 200, 200, 64, true};
    Tensors<T> data = tensors<T>(square);
    std::fill(data.q.begin(), data.q.end(), T(1.0f));
    std::fill(data.k.begin(), data.k.end(), T(-8.0f));  // all scores are -512
    this->expect_right(square, data, 1.0f, Growth::kLinear);
}

TYPED_TEST(FusedTest, RisingAndFallingScores) {
    for (const float step : {0.5f, -0.5f, -0.03f})
        this->expect_right_for_scores_in_steps(600, step);
}

TYPED_TEST(FusedTest, OverflowingScoresBecomeNan) {
    for (const std::size_t key : {0, 70, 129})
        this->expect_nan_where_a_score_overflows(key);
}

TYPED_TEST(FusedTest, CausalMaskIsExact) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{200, 200}, Lengths{70, 200}, Lengths{200, 70}, Lengths{1, 129}, Lengths{129, 1}})
        this->expect_exact_causal_mask(length_q, length_k);
}

// What a row does not see and another of its tile does may be NaN in V: the header says so. Tiles
// that do not see it are not affected.
TYPED_TEST(FusedTest, NanInVStaysInItsColumnAndTiles) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 300, 300, 64, true};
    Tensors<T> data = tensors<T>(shape);
    constexpr std::size_t kKey = 260, kColumn = 9;
    data.v[kKey * shape.dim + kColumn] = T(kNan);
    Tensors<T> clean = data;
    clean.v[kKey * shape.dim + kColumn] = T(0.0f);
    const std::vector<T> got = run(TypeParam::version(), shape, data, 0.125f).out;
    const std::vector<T> expected = run(TypeParam::version(), shape, clean, 0.125f).out;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t row = i / shape.dim;
        const bool in_column = i % shape.dim == kColumn;
        if (in_column && row >= kKey) {
            ASSERT_TRUE(std::isnan(static_cast<float>(got[i]))) << "row " << row;
        } else if (!in_column || row < 192) {
            ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(expected[i])) << "row " << row;
        }
    }
}

TYPED_TEST(FusedTest, NanInQAndK) {
    this->expect_nan_in_q_and_k_stays_in_its_rows();
}

TYPED_TEST(FusedTest, MinusInfinityIsAProbabilityOfZero) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 4, 140, 32, false};
    Tensors<T> data = tensors<T>(shape);
    std::fill(data.q.begin(), data.q.end(), T(1.0f));
    for (std::size_t key = 0; key < 140; ++key) {
        for (std::size_t c = 0; c < shape.dim; ++c)
            data.k[key * shape.dim + c] = T(key >= 70 || key % 2 == 0 ? -kInf : 0.25f);
    }
    this->expect_right(shape, data, 1.0f, Growth::kLinear);
    std::fill(data.k.begin(), data.k.end(), T(-kInf));
    for (const T x : run(TypeParam::version(), shape, data, 1.0f).out)
        EXPECT_EQ(static_cast<float>(x), 0.0f);
}

TYPED_TEST(FusedTest, NothingToDoAndNothingToSee) {
    this->expect_zeros_where_nothing_is_seen({1, 2, 1, 500, 50, 32, true});
}

TYPED_TEST(FusedTest, RefusesWhatTmaCannotAddress) {
    using T = typename TypeParam::Type;
    const auto with = [](const Shape& shape, const Layout& in, const Layout& out) {
        return refusal([&] { run(TypeParam::version(), shape, tensors<T>(shape), 1.0f, in, out); });
    };
    const Shape shape{1, 2, 1, 5, 5, 16, false};
    EXPECT_EQ(with({1, 2, 1, 5, 5, 20, false}, {}, {}),
              "fused attention: dim is 20; TMA expects a multiple of 8");
    const std::string rows =
        "fused attention: a row begins between multiples of 16 bytes; TMA expects addresses and strides "
        "that are multiples of 16 bytes";
    EXPECT_EQ(with(shape, {1, 0, false}, {}), rows);
    EXPECT_EQ(with(shape, {0, 4, false}, {}), rows);
    EXPECT_EQ(with(shape, {}, {0, 4, true}), rows);
    EXPECT_EQ(with({1, 2, 1, 5, 5, 136, false}, {}, {}), "fused attention: dim is 136; expected at most 128");
}

TYPED_TEST(FusedTest, RefusesScalesThatAreNotAboveZero) {
    const Shape shape{1, 2, 1, 5, 5, 16, false};
    const auto data = tensors<typename TypeParam::Type>(shape);
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (const auto& [scale, text] :
         {std::pair{0.0f, "0"}, {-0.0f, "-0"}, {-0.25f, "-0.25"}, {kInf, "inf"}, {kNan, "nan"}})
        EXPECT_EQ(refusal([&, factor = scale] { run(TypeParam::version(), shape, data, factor); }),
                  std::string("fused attention: scale is ") + text + "; expected a finite number above 0");
}

TEST(Versions, HaveAReasonForWhatTheyCannotRun) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_EQ(day43::versions<__half>().front().cannot_run({1, 1, 1, 5, 5, 20, false}),
              "needs a dim that is a multiple of 8; this one is 20");
}

}  // namespace
