// Every version of fused attention against the reference, row by row.
#include "fused_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/fused_attention.hpp"
#include "common/device/random.hpp"
#include "common/test/attention_test.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using namespace course::attention;
using course::DeviceBuffer;
using course::Growth;
using course::GuardedBuffer;
using course::refusal;

// A version and the type it is for.
template <class T, int INDEX>
struct Listed {
    using Type = T;
    static const day26::Version<T>& version() { return day26::versions<T>()[INDEX]; }
    static day26::Precision precision() { return day26::precision(version()); }
};

using Versions = testing::Types<Listed<float, 0>, Listed<float, 1>, Listed<float, 2>, Listed<__half, 0>,
                                Listed<__nv_bfloat16, 0>>;
TYPED_TEST_SUITE(FusedTest, Versions, VersionName);

// Around a lane's, a warp's and a block's tile, in both directions, with and without a mask.
TYPED_TEST(FusedTest, Lengths) {
    constexpr std::size_t kLengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257};
    for (std::size_t i = 0; i < std::size(kLengths); ++i) {
        const std::size_t other = kLengths[(5 * i + 3) % std::size(kLengths)];
        for (const bool causal : {false, true}) {
            this->expect_right({.length_q = kLengths[i], .length_k = other, .dim = 32, .causal = causal});
            this->expect_right({.length_q = other, .length_k = kLengths[i], .dim = 32, .causal = causal});
        }
        this->expect_right({.length_q = kLengths[i], .length_k = kLengths[i], .dim = 32, .causal = true});
    }
}

TYPED_TEST(FusedTest, HeadDimensions) {
    for (const std::size_t dim :
         {1, 2, 7, 8, 9, 31, 32, 33, 40, 63, 64, 65, 72, 80, 95, 96, 97, 120, 127, 128}) {
        this->expect_right({.length_q = 34, .length_k = 66, .dim = dim});
        this->expect_right({.length_q = 66, .length_k = 70, .dim = dim, .causal = true});
    }
    for (const std::size_t dim : {64, 96, 128})
        this->expect_right({.length_q = 130, .length_k = 200, .dim = dim, .causal = true});
}

TYPED_TEST(FusedTest, BatchesAndGroupsOfHeads) {
    for (const std::size_t heads_kv : {1, 2, 4, 8}) {
        const bool causal = heads_kv == 2 || heads_kv == 8;
        this->expect_right({2, 8, heads_kv, 33, 65, 32, causal});
    }
    this->expect_right({3, 6, 2, 5, 7, 64, false});
}

TYPED_TEST(FusedTest, StridesAndAlignment) {
    const Shape shape{1, 2, 1, 35, 67, 40, true};
    for (const std::size_t offset : {0, 1, 8}) {
        for (const std::size_t padding : {0, 1, 8}) {
            const Layout layout{offset, padding, padding == 8};
            this->expect_right(shape, layout, {});
            this->expect_right(shape, {}, layout);
            this->expect_right(shape, layout, {offset, padding, padding != 8});
        }
    }
    // Rows that end within a pack, with aligned strides: what lies behind them is NaN.
    this->expect_right({1, 2, 1, 20, 70, 37, false}, {0, 3, true}, {0, 11, false});
    this->expect_right({1, 2, 1, 20, 70, 37, true}, {0, 11, false}, {8, 3, true});
}

// On the CPU: rows that are so far apart that offsets exceed 32 bits, of which only the rows
// themselves exist.
TYPED_TEST(FusedTest, OffsetsBeyond32Bits) {
    using T = typename TypeParam::Type;
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const Shape shape{1, 1, 1, 40, 40, 32, true};
    constexpr std::size_t kApart = std::size_t{1} << 27;
    const Tensors<T> data = tensors<T>(shape);
    std::vector<double> places;
    for (std::size_t i = 0; i < shape.length_q; ++i)
        places.push_back(static_cast<double>(i) / static_cast<double>(shape.length_q));
    const std::size_t size = shape.length_q * kApart;
    const course::LargeArray<T> q(size, 1024, places), k(size, 1024, places), v(size, 1024, places),
        out(size, 1024, places);
    for (std::size_t i = 0; i < elements(shape.q()); ++i) {
        const std::size_t at = i / shape.dim * kApart + i % shape.dim;
        q[at] = data.q[i];
        k[at] = data.k[i];
        v[at] = data.v[i];
    }
    const auto view = [&](const course::LargeArray<T>& array) {
        return HeadsView<T>(array.span(), shape.q(), {size, size, kApart});
    };
    const float scale = TestFixture::usual_scale(shape);
    course::run_few_blocks(
        [&] {
            TypeParam::version().launcher({view(q), view(k), view(v), view(out), scale, true}, nullptr);
        },
        course::kLargePlaces, "Are offsets of rows computed in 64 bits?");
    if (testing::Test::HasFatalFailure()) return;
    std::vector<T> got;
    for (std::size_t i = 0; i < elements(shape.q()); ++i)
        got.push_back(out[i / shape.dim * kApart + i % shape.dim]);
    const course::VerifyResult result =
        compare(TypeParam::precision(), shape, data, scale, got, Growth::kSquareRoot);
    EXPECT_TRUE(result.ok()) << result.message();
}

// Q, K and V as parts of one projection: [batch, length, 3, heads, dim].
TYPED_TEST(FusedTest, PackedProjection) {
    using T = typename TypeParam::Type;
    const Shape shape{2, 3, 3, 50, 50, 32, true};
    const auto all = course::make_data<T>(elements(shape.q()) * 3, course::DataPattern::kNormal, kSeed);
    const DeviceBuffer<T> projection{std::span<const T>(all)};
    GuardedBuffer<T> out(elements(shape.q()));
    const std::size_t row = shape.heads * shape.dim;
    const auto part = [&](std::size_t index) {
        return HeadsView<const T>(projection.span().subspan(index * row, all.size() - index * row), shape.q(),
                                  {shape.length_q * 3 * row, shape.dim, 3 * row});
    };
    TypeParam::version().launcher({part(0),
                                   part(1),
                                   part(2),
                                   {out.span(), shape.q(), {shape.length_q * row, shape.dim, row}},
                                   0.2f,
                                   true},
                                  nullptr);
    Tensors<T> data = tensors<T>(shape);
    std::vector<T> got(elements(shape.q()));
    const std::vector<T> in_rows = out.to_host();
    std::size_t index = 0;
    for (std::size_t b = 0; b < shape.batch; ++b) {
        for (std::size_t h = 0; h < shape.heads; ++h) {
            for (std::size_t i = 0; i < shape.length_q; ++i) {
                for (std::size_t c = 0; c < shape.dim; ++c, ++index) {
                    const std::size_t token = b * shape.length_q + i;
                    data.q[index] = all[token * 3 * row + h * shape.dim + c];
                    data.k[index] = all[(token * 3 + 1) * row + h * shape.dim + c];
                    data.v[index] = all[(token * 3 + 2) * row + h * shape.dim + c];
                    got[index] = in_rows[token * row + h * shape.dim + c];
                }
            }
        }
    }
    const course::VerifyResult result =
        compare(TypeParam::precision(), shape, data, 0.2f, got, Growth::kSquareRoot);
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(out.damage(), "");
}

TYPED_TEST(FusedTest, RandomShapes) {
    course::Random random(kSeed);
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    // What many heads cost on a CPU, BatchesAndGroupsOfHeads pays once.
    const std::uint32_t most_heads = course::is_cpu_stand_in() ? 2 : 3;
    for (int round = 0; round < 8; ++round) {
        const std::size_t heads_kv = 1 + random.below(most_heads);
        const Shape shape{1 + random.below(2),
                          heads_kv * (1 + random.below(most_heads)),
                          heads_kv,
                          1 + random.below(150),
                          1 + random.below(200),
                          1 + random.below(128),
                          random.below(2) == 1};
        this->expect_right(shape, {random.below(9), random.below(9), random.below(2) == 1},
                           {random.below(9), random.below(9), random.below(2) == 1});
    }
}

// Scores of +-100 and of +-10000: one key of a row gets nearly all the weight, and sums are
// rescaled again and again.
TYPED_TEST(FusedTest, LargeScores) {
    const Shape shape{1, 1, 1, 70, 300, 64, false};
    for (const bool causal : {false, true}) {
        Shape masked = shape;
        masked.causal = causal;
        for (const float scale : {1.0f, 10.0f, 1000.0f})
            this->expect_right(masked, tensors<typename TypeParam::Type>(shape), scale, Growth::kLinear);
    }
}

// Scores of 2^20, 2^20 - 1, 2^20 - 2, ..., exact in every type, and the same below -2^20: the limit
// in fused_attention.hpp. Each p is off by at most 2^(1/16), half of the spacing there, so with the
// sum by 2^(1/8); V is positive. 16-bit types round p and the result.
TYPED_TEST(FusedTest, ScoresUpToTheLimit) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 40, 150, 32, false};
    constexpr std::size_t kPeriod = 7;
    for (const float sign : {1.0f, -1.0f}) {
        Tensors<T> data{
            std::vector<T>(elements(shape.q()), T(0.0f)), std::vector<T>(elements(shape.kv()), T(0.0f)),
            course::make_data<T>(elements(shape.kv()), course::DataPattern::kSignedUniform, kSeed)};
        for (T& x : data.v)
            x = T(std::abs(static_cast<float>(x)));
        for (std::size_t row = 0; row < shape.length_q; ++row) {
            data.q[row * shape.dim] = T(1024.0f * sign);
            data.q[row * shape.dim + 1] = T(1.0f);
        }
        std::vector<double> expected(shape.dim);
        double sum = 0;
        for (std::size_t key = 0; key < shape.length_k; ++key) {
            const auto below = static_cast<float>((key * 3 + key / 40) % kPeriod);  // the largest
            data.k[key * shape.dim] = T(1024.0f);
            data.k[key * shape.dim + 1] = T(-below);
            const double p = std::exp(-static_cast<double>(below));
            sum += p;
            for (std::size_t c = 0; c < shape.dim; ++c)
                expected[c] += p * static_cast<double>(static_cast<float>(data.v[key * shape.dim + c]));
        }
        const Result<T> got = run(TypeParam::version(), shape, data, 1.0f);
        const double of_types = 2 * day26::precision(TypeParam::version()).result;
        for (std::size_t i = 0; i < got.out.size(); ++i) {
            const double value = expected[i % shape.dim] / sum;
            ASSERT_NEAR(static_cast<double>(static_cast<float>(got.out[i])), value,
                        (std::exp2(0.125) - 1 + of_types + 1e-5) * value)
                << "sign " << sign << ", element " << i;
        }
    }
}

TYPED_TEST(FusedTest, OverflowingScoresBecomeNan) {
    for (const std::size_t key : {0, 31, 70, 129})
        this->expect_nan_where_a_score_overflows(key);
}

TYPED_TEST(FusedTest, RisingAndFallingScores) {
    for (const float step : {0.5f, 0.03f, -0.5f, -0.03f})
        this->expect_right_for_scores_in_steps(400, step);
}

// Equal keys: the mean of V. And one key far above all others: its V.
TYPED_TEST(FusedTest, EqualKeysAndOneDominantKey) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 33, 200, 64, false};
    Tensors<T> data = tensors<T>(shape);
    std::fill(data.k.begin(), data.k.end(), T(0.75f));
    this->expect_right(shape, data, 0.125f, Growth::kLinear);
    std::fill(data.q.begin(), data.q.end(), T(1.0f));
    for (const std::size_t dominant : {0, 63, 64, 131, 199}) {
        Tensors<T> one = data;
        std::fill_n(one.k.begin() + static_cast<std::ptrdiff_t>(dominant * shape.dim), shape.dim, T(8.0f));
        this->expect_right(shape, one, 1.0f, Growth::kLinear);
        const Result<T> got = run(TypeParam::version(), shape, one, 1.0f);
        for (std::size_t c = 0; c < shape.dim; ++c)
            EXPECT_NEAR(static_cast<float>(got.out[c]), static_cast<float>(one.v[dominant * shape.dim + c]),
                        1e-5f);
    }
}

TYPED_TEST(FusedTest, CausalMaskIsExact) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{130, 130}, Lengths{70, 200}, Lengths{200, 70}, Lengths{1, 129}, Lengths{129, 1}})
        this->expect_exact_causal_mask(length_q, length_k);
}

// Values that a row does not see may be NaN or Inf. Those that it sees affect their column only.
TYPED_TEST(FusedTest, NotFiniteInV) {
    using T = typename TypeParam::Type;
    for (const float bad : {kNan, kInf, -kInf}) {
        for (const std::size_t key : {0, 5, 63, 64, 100, 129}) {
            // All of them for NaN; Inf times a probability of 0 is NaN, too.
            if (std::isinf(bad) && key % 64 != 0 && key != 129) continue;
            const Shape shape{1, 1, 1, 130, 130, 64, true};
            Tensors<T> data = tensors<T>(shape);
            const std::size_t column = 3 + key % 50;
            data.v[key * shape.dim + column] = T(bad);
            const Result<T> got = run(TypeParam::version(), shape, data, 0.125f);
            Tensors<T> clean = data;
            clean.v[key * shape.dim + column] = T(0.0f);
            // Rows that see the value are compared without its column, all others in full.
            const std::size_t head_size = shape.length_k * shape.dim;
            std::vector<T> others = got.out;
            for (std::size_t row = 0; row < shape.length_q; ++row) {
                const std::size_t index = row * shape.dim + column;
                if (row < key) continue;
                EXPECT_FALSE(std::isfinite(static_cast<float>(got.out[index])))
                    << bad << " of key " << key << " is not in row " << row;
                const auto reference = day26::reference_row<T>(
                    std::span(clean.q).subspan(row * shape.dim, shape.dim),
                    std::span(clean.k).first(head_size), std::span(clean.v).first(head_size),
                    day26::visible_keys(row, shape.length_q, shape.length_k, true), 0.125,
                    day26::precision(TypeParam::version()));
                others[index] = T(static_cast<float>(reference.value[column]));
            }
            const course::VerifyResult result =
                compare(TypeParam::precision(), shape, clean, 0.125f, others, Growth::kSquareRoot);
            EXPECT_TRUE(result.ok()) << bad << " of key " << key << ": " << result.message();
        }
    }
}

// Inf and -Inf in the same column, in one tile of keys: rows that see both have NaN there.
TYPED_TEST(FusedTest, BothInfinitiesInAColumnOfVGiveNan) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 130, 130, 64, true};
    constexpr std::size_t kColumn = 3;
    for (const float first : {kInf, -kInf}) {
        Tensors<T> data = tensors<T>(shape);
        data.v[64 * shape.dim + kColumn] = T(first);
        data.v[65 * shape.dim + kColumn] = T(-first);
        const Result<T> got = run(TypeParam::version(), shape, data, 0.125f);
        for (std::size_t i = 0; i < got.out.size(); ++i) {
            const std::size_t row = i / shape.dim;
            const auto x = static_cast<float>(got.out[i]);
            if (i % shape.dim != kColumn || row < 64) {
                ASSERT_TRUE(std::isfinite(x)) << first << " first, row " << row;
            } else if (row == 64) {
                ASSERT_EQ(x, first);
            } else {
                ASSERT_TRUE(std::isnan(x)) << first << " first, row " << row << " has " << x;
            }
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
            data.k[key * shape.dim + c] = T(key < 70 || key % 2 == 0 ? -kInf : 0.25f);
    }
    // Splitting turns an Inf into a NaN: this version gives NaN in these rows.
    if (TypeParam::version().name == "tf32x3") {
        for (const T x : run(TypeParam::version(), shape, data, 1.0f).out)
            EXPECT_TRUE(std::isnan(static_cast<float>(x)));
        return;
    }
    this->expect_right(shape, data, 1.0f, Growth::kLinear);
    std::fill(data.k.begin(), data.k.end(), T(-kInf));
    for (const T x : run(TypeParam::version(), shape, data, 1.0f).out)
        EXPECT_EQ(static_cast<float>(x), 0.0f);
}

TYPED_TEST(FusedTest, NothingToDoAndNothingToSee) {
    this->expect_zeros_where_nothing_is_seen({1, 1, 1, 200, 50, 32, true});
}

// Rows so far apart that offsets do not fit in 32 bits: Q, K and V interleaved in one allocation,
// the result in another.
TYPED_TEST(FusedTest, MoreElementsThan32BitsCount) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 70, 70, 64, true};
    constexpr std::size_t kStride = std::size_t{1} << 25;
    const std::size_t size = (shape.length_q - 1) * kStride + 3 * shape.dim;
    if (const std::string reason = course::why_not_so_large(2 * size * sizeof(T)); !reason.empty())
        GTEST_SKIP() << reason;
    const Tensors<T> data = tensors<T>(shape);
    DeviceBuffer<T> in(size);
    DeviceBuffer<T> out(size);
    const auto view = [&](DeviceBuffer<T>& buffer, std::size_t index) {
        return HeadsView<T>(buffer.span().subspan(index * shape.dim, size - index * shape.dim), shape.q(),
                            {0, 0, kStride});
    };
    const auto copy = [&](T* to, std::size_t to_pitch, const T* from, std::size_t from_pitch) {
        CUDA_CHECK(cudaMemcpy2D(to, to_pitch * sizeof(T), from, from_pitch * sizeof(T), shape.dim * sizeof(T),
                                shape.length_q, cudaMemcpyDefault));
    };
    copy(view(in, 0).data(), kStride, data.q.data(), shape.dim);
    copy(view(in, 1).data(), kStride, data.k.data(), shape.dim);
    copy(view(in, 2).data(), kStride, data.v.data(), shape.dim);
    TypeParam::version().launcher({view(in, 0), view(in, 1), view(in, 2), view(out, 0), 0.125f, true},
                                  nullptr);
    std::vector<T> got(elements(shape.q()));
    copy(got.data(), shape.dim, out.data(), kStride);
    const course::VerifyResult result =
        compare(TypeParam::precision(), shape, data, 0.125f, got, Growth::kSquareRoot);
    EXPECT_TRUE(result.ok()) << result.message();
}

TYPED_TEST(FusedTest, RefusesBadArguments) {
    using T = typename TypeParam::Type;
    auto buffer = course::zeros<T>(4096);
    const auto view = [&](std::size_t offset, const Extents& extents) {
        return HeadsView<T>(buffer.span().subspan(offset, 4096 - offset), extents);
    };
    const Extents usual{1, 2, 3, 8};
    const auto with = [&](const HeadsView<T>& q, const HeadsView<T>& k, const HeadsView<T>& v,
                          const HeadsView<T>& out, float scale = 1) {
        return refusal([&] { TypeParam::version().launcher({q, k, v, out, scale, false}, nullptr); });
    };
    const HeadsView<T> in = view(0, usual);
    const HeadsView<T> out = view(2048, usual);
    EXPECT_EQ(with(in, in, in, out), "");
    EXPECT_EQ(with(in, in, view(0, {1, 2, 4, 8}), out),
              "fused attention: k is 1 x 2 x 3 x 8 and v 1 x 2 x 4 x 8; expected the same");
    EXPECT_EQ(with(in, in, in, view(2048, {1, 2, 3, 7})),
              "fused attention: q is 1 x 2 x 3 x 8 and out 1 x 2 x 3 x 7; expected the same");
    EXPECT_EQ(with(in, view(0, {2, 2, 3, 8}), view(0, {2, 2, 3, 8}), out),
              "fused attention: q is 1 x 2 x 3 x 8 and k 2 x 2 x 3 x 8; expected the same batch and dim");
    EXPECT_EQ(with(in, view(0, {1, 3, 3, 8}), view(0, {1, 3, 3, 8}), out),
              "fused attention: q has 2 heads and k 3; expected a multiple of k's");
    EXPECT_EQ(with(in, view(0, {1, 0, 3, 8}), view(0, {1, 0, 3, 8}), out),
              "fused attention: q has 2 heads and k 0; expected a multiple of k's");
    const Extents wide{1, 1, 3, 129};
    EXPECT_EQ(with(view(0, wide), view(0, wide), view(0, wide), view(2048, wide)),
              "fused attention: dim is 129; expected at most 128");
    const HeadsView<T> endless(buffer.span(), {1, 1, std::size_t{1} << 30, 8}, {0, 0, 0});
    EXPECT_EQ(with(view(0, {1, 2, 3, 8}), endless, endless, out),
              "fused attention: lengths are 3 and 1073741824; expected at most 1073741823");
    const std::string scale_expected = "; expected a finite number above 0";
    EXPECT_EQ(with(in, in, in, out, 0.0f), "fused attention: scale is 0" + scale_expected);
    EXPECT_EQ(with(in, in, in, out, -1.0f), "fused attention: scale is -1" + scale_expected);
    EXPECT_EQ(with(in, in, in, out, kInf), "fused attention: scale is inf" + scale_expected);
    EXPECT_EQ(with(in, in, in, out, kNan), "fused attention: scale is nan" + scale_expected);
    const std::string overlap = "fused attention: out overlaps an input; expected memory of its own";
    EXPECT_EQ(with(in, in, in, view(47, usual)), overlap);
    EXPECT_EQ(with(in, view(2048 + 47, usual), in, out), overlap);
    EXPECT_EQ(with(in, in, view(2048 - 47, usual), out), overlap);
    EXPECT_EQ(with(in, in, view(2048 - 48, usual), out), "");
    EXPECT_EQ(
        with(in, in, in, HeadsView<T>(buffer.span().subspan(2048, 2048), usual, {48, 20, 8})),
        "fused attention: elements of out coincide; expected strides under which each has a place of its "
        "own");
}

// --- course::fused_attention, for other days -----------------------------------------------------

class TokenAttention : public course::DeviceTest {
  protected:
    static constexpr std::size_t kBatch = 2, kHeads = 3, kWidth = 8, kColumns = kHeads * kWidth;

    // Rows of kColumns elements, `padding` elements of NaN after each.
    static std::vector<float> padded(const std::vector<float>& values, std::size_t padding) {
        std::vector<float> result(values.size() / kColumns * (kColumns + padding), kNan);
        for (std::size_t i = 0; i < values.size(); ++i)
            result[i / kColumns * (kColumns + padding) + i % kColumns] = values[i];
        return result;
    }

    static void expect_right(std::size_t queries, std::size_t keys, bool causal, std::size_t padding) {
        SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys" +
                     (causal ? ", causal" : ""));
        const auto data = [](std::size_t rows, std::uint64_t seed) {
            return course::make_data<float>(rows * kColumns, course::DataPattern::kNormal, seed);
        };
        const std::vector<float> q = data(kBatch * queries, 1), k = data(kBatch * keys, 2),
                                 v = data(kBatch * keys, 3);
        const std::size_t ld = kColumns + padding;
        const DeviceBuffer<float> q_device{padded(q, padding)}, k_device{padded(k, padding)},
            v_device{padded(v, padding)};
        GuardedBuffer<float> out(kBatch * queries * ld);
        const auto matrix = [&](const auto& span, std::size_t rows) {
            return course::DeviceMatrix(span, kBatch * rows, kColumns, ld);
        };
        course::fused_attention(
            {matrix(q_device.span(), queries), matrix(k_device.span(), keys), matrix(v_device.span(), keys),
             matrix(out.span(), queries), kBatch, kHeads, queries, keys, kWidth, 0.5f, causal},
            nullptr);

        const std::vector<float> all = out.to_host();
        std::vector<float> got;
        std::vector<double> expected, magnitude;
        for (std::size_t row = 0; row < kBatch * queries; ++row) {
            for (std::size_t h = 0; h < kHeads; ++h) {
                const auto head = [&](const std::vector<float>& from, std::size_t first, std::size_t rows) {
                    std::vector<float> result;
                    for (std::size_t i = first; i < first + rows; ++i)
                        for (std::size_t c = 0; c < kWidth; ++c)
                            result.push_back(from[i * kColumns + h * kWidth + c]);
                    return result;
                };
                const std::size_t batch = row / queries;
                const std::vector<float> of_q = head(q, row, 1), of_k = head(k, batch * keys, keys),
                                         of_v = head(v, batch * keys, keys);
                const std::size_t visible = causal ? std::min(row % queries + 1, keys) : keys;
                // tf32x3 where it can run; its bounds are the widest of the FP32 versions.
                const auto reference = day26::reference_row<float>(
                    of_q, of_k, of_v, visible, 0.5, day26::precision(day26::versions<float>().back()));
                for (std::size_t c = 0; c < kWidth; ++c) {
                    got.push_back(all[row * ld + h * kWidth + c]);
                    expected.push_back(reference.value[c]);
                    magnitude.push_back(reference.bound[c] / course::FloatTraits<float>::kEpsilon);
                }
            }
        }
        course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, kWidth);
        result.damage = out.damage();
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i % ld >= kColumns && !std::isnan(all[i]))
                result.damage += " the padding of a row was written";
        EXPECT_TRUE(result.ok()) << result.message();
    }
};

// As PyTorch's is_causal: query i sees the keys 0 to i, also if there are more or fewer keys than
// queries.
TEST_F(TokenAttention, AlignsTheMaskToTheFirstToken) {
    for (const bool causal : {false, true}) {
        for (const std::size_t padding : {0, 3}) {
            expect_right(9, 9, causal, padding);
            expect_right(70, 20, causal, padding);
            expect_right(20, 70, causal, padding);
            expect_right(5, 0, causal, padding);
        }
    }
}

TEST_F(TokenAttention, RefusesWhatDoesNotFit) {
    auto memory = course::zeros<float>(400);
    const auto with = [&](std::size_t q_rows, std::size_t k_rows, std::size_t out_at, float scale) {
        const auto matrix = [&](std::size_t first, std::size_t rows) {
            return course::DeviceMatrix<float>(memory.span().subspan(first, rows * 8), rows, 8);
        };
        return refusal([&] {
            course::fused_attention({matrix(0, q_rows), matrix(100, k_rows), matrix(200, 5),
                                     matrix(out_at, 4), 1, 2, 4, 5, 4, scale, true},
                                    nullptr);
        });
    };
    EXPECT_EQ(with(4, 5, 300, 1), "");
    EXPECT_EQ(with(3, 5, 300, 1), "fused attention: q is 3 x 8; expected 4 x 8");
    EXPECT_EQ(with(4, 4, 300, 1), "fused attention: k is 4 x 8; expected 5 x 8");
    EXPECT_EQ(with(4, 5, 31, 1), "fused attention: out overlaps an input; expected memory of its own");
    EXPECT_EQ(with(4, 5, 300, 0), "fused attention: scale is 0; expected a finite number above 0");
}

TEST(HeadsView, MustFit) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    DeviceBuffer<float> buffer(100);
    const auto make = [&](const Extents& extents, const Strides& strides) {
        return refusal([&] { static_cast<void>(HeadsView<float>(buffer.span(), extents, strides)); });
    };
    EXPECT_EQ(make({2, 5, 2, 5}, {50, 10, 5}), "");
    EXPECT_EQ(make({2, 5, 2, 5}, {50, 10, 6}),
              "HeadsView: 2 x 5 x 2 x 5 with strides 50, 10, 6 does not fit in a span of 100 elements");
    EXPECT_EQ(make({3, 3, 3, 4}, {0, 0, 0}), "") << "the same row for all";
    EXPECT_EQ(make({0, 3, 3, 4}, {1000, 1000, 1000}), "");
    EXPECT_NE(make({3, 3, 3, 4}, {std::size_t{1} << 63, 1, 1}), "");
    EXPECT_NE(make({3, 3, 3, 4}, {~std::size_t{0} / 2, 1, 1}), "");
}

// The reference itself, by hand: two keys, scores 0 and ln 3.
TEST(Reference, KnownValues) {
    const std::vector<float> q = {1, 0};
    const std::vector<float> k = {0, 5, std::log(3.0f), 7};
    const std::vector<float> v = {4, 0, 8, -4};
    const day26::Precision precision;
    const auto row = day26::reference_row<float>(q, k, v, 2, 1.0, precision);
    EXPECT_NEAR(row.value[0], 7.0, 1e-6);
    EXPECT_NEAR(row.value[1], -3.0, 1e-6);
    EXPECT_EQ(day26::reference_row<float>(q, k, v, 1, 1.0, precision).value[0], 4.0);
    EXPECT_EQ(day26::reference_row<float>(q, k, v, 0, 1.0, precision).value[0], 0.0);
}

TEST(Names, SayWhatDiffers) {
    EXPECT_EQ(day26::name(Shape{4, 8, 8, 2048, 2048, 64, false}), "4x8x2048x64");
    EXPECT_EQ(day26::name(Shape{2, 8, 1, 100, 300, 64, true}), "2x8:1x100:300x64 causal");
}

// Of causal 3 x 3 scores, 6 of 9 are visible.
TEST(Work, CountsWhatIsSeen) {
    EXPECT_EQ(day26::work<float>({2, 4, 2, 3, 3, 8, true}).flops, 4.0 * 8 * 6 * 8);
    EXPECT_EQ(day26::work<float>({2, 4, 2, 3, 5, 8, false}).flops, 4.0 * 8 * 15 * 8);
    EXPECT_EQ(day26::work<__half>({2, 4, 2, 3, 5, 8, false}).bytes, 2.0 * (2 * 8 * 24 + 2 * 4 * 40));
}

}  // namespace
