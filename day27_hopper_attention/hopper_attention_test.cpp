// Every version of attention on Hopper against the reference, row by row.
#include "hopper_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
    static const Version<T>& version() { return day27::versions<T>()[INDEX]; }
    static Precision precision() { return tensor_core_precision<T>(); }
};

struct VersionName {
    template <class V>
    static std::string GetName(int) {
        return (std::is_same_v<typename V::Type, __half> ? "half_" : "bfloat16_") + V::version().name;
    }
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

// Scores that only rise, so that every tile has a new maximum, and that only fall.
TYPED_TEST(FusedTest, RisingAndFallingScores) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 40, 600, 32, false};
    for (const float step : {0.5f, -0.5f, -0.03f}) {
        Tensors<T> data = tensors<T>(shape);
        std::fill(data.q.begin(), data.q.end(), T(1.0f));
        for (std::size_t i = 0; i < data.k.size(); ++i)
            data.k[i] = T(static_cast<float>(i / shape.dim) * step);
        this->expect_right(shape, data, 0.03125f, Growth::kLinear);
    }
}

// A scaled score beyond the largest float makes NaN of the rows that see it, and of no others.
TYPED_TEST(FusedTest, OverflowingScoresBecomeNan) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 140, 140, 32, true};
    Tensors<T> data = tensors<T>(shape);
    std::fill(data.q.begin(), data.q.end(), T(1.0f));
    for (const std::size_t key : {0, 70, 129}) {
        std::fill(data.k.begin(), data.k.end(), T(0.0f));
        std::fill_n(data.k.begin() + static_cast<std::ptrdiff_t>(key * shape.dim), shape.dim, T(2.0f));
        const std::vector<T> got = run(TypeParam::version(), shape, data, 1e38f).out;
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(std::isnan(static_cast<float>(got[i])), i / shape.dim >= key)
                << "key " << key << ", row " << i / shape.dim;
        }
    }
}

// Each row must see its own keys: rows of V are 1 and -1 in turn, so one key too many or too few
// changes the mean.
TYPED_TEST(FusedTest, CausalMaskIsExact) {
    using T = typename TypeParam::Type;
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{200, 200}, Lengths{70, 200}, Lengths{200, 70}, Lengths{1, 129}, Lengths{129, 1}}) {
        const Shape shape{1, 1, 1, length_q, length_k, 32, true};
        Tensors<T> data = tensors<T>(shape);
        std::fill(data.k.begin(), data.k.end(), T(0.0f));
        for (std::size_t i = 0; i < data.v.size(); ++i)
            data.v[i] = T(i / shape.dim % 2 == 0 ? 1.0f : -1.0f);
        const Result<T> got = run(TypeParam::version(), shape, data, 1.0f);
        EXPECT_EQ(got.damage, "");
        for (std::size_t row = 0; row < length_q; ++row) {
            const std::size_t seen = visible_keys(row, length_q, length_k, true);
            const float expected = seen % 2 == 1 ? 1.0f / static_cast<float>(seen) : 0.0f;
            ASSERT_NEAR(static_cast<float>(got.out[row * shape.dim]), expected, 0.004f * expected + 1e-6f)
                << length_q << " x " << length_k << ", row " << row;
        }
    }
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
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 100, 150, 64, true};
    Tensors<T> data = tensors<T>(shape);
    data.q[7 * shape.dim + 11] = T(kNan);
    data.k[120 * shape.dim + 60] = T(kNan);
    const Result<T> got = run(TypeParam::version(), shape, data, 0.125f);
    for (std::size_t i = 0; i < got.out.size(); ++i) {
        const std::size_t row = i / shape.dim;
        EXPECT_EQ(std::isnan(static_cast<float>(got.out[i])), row == 7 || row + 50 >= 120) << "row " << row;
    }
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
    using T = typename TypeParam::Type;
    for (const Shape& shape : {Shape{0, 2, 1, 5, 5, 32, false}, Shape{1, 0, 0, 5, 5, 32, false},
                               Shape{1, 2, 1, 0, 5, 32, true}, Shape{1, 2, 1, 5, 5, 0, false}}) {
        EXPECT_EQ(run(TypeParam::version(), shape, tensors<T>(shape), 1.0f).damage, "");
    }
    const Shape no_keys{2, 2, 1, 40, 0, 48, false};
    for (const T x : run(TypeParam::version(), no_keys, tensors<T>(no_keys), 1.0f).out)
        ASSERT_EQ(static_cast<float>(x), 0.0f);
    const Shape rows_without{1, 2, 1, 500, 50, 32, true};
    const std::vector<T> out = run(TypeParam::version(), rows_without, tensors<T>(rows_without), 1.0f).out;
    for (std::size_t i = 0; i < 450 * 32; ++i)
        ASSERT_EQ(static_cast<float>(out[i]), 0.0f);
    EXPECT_NE(static_cast<float>(out[450 * 32]), 0.0f);
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

TEST(Versions, HaveAReasonForWhatTheyCannotRun) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_EQ(day27::versions<__half>().front().cannot_run({1, 1, 1, 5, 5, 20, false}),
              "needs a dim that is a multiple of 8; this one is 20");
}

}  // namespace
