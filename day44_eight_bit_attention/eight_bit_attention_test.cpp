// Both versions of 8-bit attention against the reference in double, row by row.
#include "eight_bit_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/attention_test.hpp"
#include "common/test/device_test.hpp"

namespace {

using namespace course::attention;
using course::DeviceBuffer;
using course::Growth;
using course::refusal;
using day44::E4m3;

// Elements and, for each head, their scale.
struct Scaled {
    std::vector<E4m3> elements;
    std::vector<float> scales;

    // The elements times their scale.
    std::vector<float> values(std::size_t head_size) const {
        std::vector<float> result(elements.size());
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = static_cast<float>(elements[i]) * scales[i / head_size];
        return result;
    }
};

Scaled scaled(const std::vector<float>& values, const Extents& e, float first_scale) {
    Scaled result;
    const std::size_t head_size = std::max<std::size_t>(e.length * e.dim, 1);
    for (std::size_t head = 0; head < e.batch * e.heads; ++head)  // powers of two: products are exact
        result.scales.push_back(std::ldexp(first_scale, static_cast<int>(head % 3)));
    for (std::size_t i = 0; i < values.size(); ++i)
        result.elements.emplace_back(values[i] / result.scales[i / head_size]);
    return result;
}

struct Data {
    Scaled q, k, v;
};

Data data_of(const Shape& shape, std::uint64_t seed = kSeed) {
    const auto normal = [](const Extents& e, std::uint64_t number) {
        return course::make_data<float>(elements(e), course::DataPattern::kNormal, number);
    };
    return {scaled(normal(shape.q(), seed), shape.q(), 0x1p-6f),
            scaled(normal(shape.kv(), seed + 1), shape.kv(), 0x1p-7f),
            scaled(normal(shape.kv(), seed + 2), shape.kv(), 0x1p-6f)};
}

class EightBits : public course::DeviceTest, public testing::WithParamInterface<std::size_t> {
  protected:
    void SetUp() override {
        course::DeviceTest::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = version().cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }
    static const day44::Version& version() { return day44::versions()[GetParam()]; }

    static Result<__nv_bfloat16> run(const Shape& shape, const Data& data, float scale, const Layout& in = {},
                                     const Layout& out = {}) {
        Placed<E4m3> q(data.q.elements, shape.q(), in);
        Placed<E4m3> k(data.k.elements, shape.kv(), in);
        Placed<E4m3> v(data.v.elements, shape.kv(), in);
        Placed<__nv_bfloat16> result(shape.q(), out);
        const DeviceBuffer<float> q_scale{std::span<const float>(data.q.scales)};
        const DeviceBuffer<float> k_scale{std::span<const float>(data.k.scales)};
        const DeviceBuffer<float> v_scale{std::span<const float>(data.v.scales)};
        version().launcher({q.view(), k.view(), v.view(), q_scale.span(), k_scale.span(), v_scale.span(),
                            result.view(), scale, shape.causal},
                           nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        std::size_t written = 0;
        Result<__nv_bfloat16> got{result.values(written), result.buffer().damage()};
        if (written > 0) got.damage += " the padding of a row of out was written";
        return got;
    }

    static void expect_right(const Shape& shape, const Data& data, float scale, Growth growth,
                             const Layout& in = {}, const Layout& out = {}) {
        const auto got = run(shape, data, scale, in, out);
        const std::size_t of_q = shape.length_q * shape.dim;
        const std::size_t of_k = shape.length_k * shape.dim;
        const Tensors<float> values{data.q.values(of_q), data.k.values(of_k), data.v.values(of_k)};
        course::VerifyResult result = compare(day44::precision(), shape, values, scale, got.out, growth);
        result.damage = got.damage;
        EXPECT_TRUE(result.ok()) << name(shape) << ", scale " << scale << ": " << result.message();
    }

    static void expect_right(const Shape& shape, const Layout& in = {}, const Layout& out = {}) {
        expect_right(shape, data_of(shape), 1 / std::sqrt(static_cast<float>(shape.dim)), Growth::kSquareRoot,
                     in, out);
    }
};

INSTANTIATE_TEST_SUITE_P(Versions, EightBits, testing::Values(0, 1),
                         [](const auto& which) { return std::string(day44::versions()[which.param].name); });

// Around 64 rows of a warpgroup, 192 of a block, tiles of 96 and 128 keys, and more tiles than
// stages.
TEST_P(EightBits, Lengths) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{1, 1}, Lengths{15, 17}, Lengths{64, 96}, Lengths{65, 97}, Lengths{127, 129},
          Lengths{193, 257}, Lengths{130, 500}, Lengths{257, 100}}) {
        for (const bool causal : {false, true})
            expect_right({.length_q = length_q, .length_k = length_k, .dim = 48, .causal = causal});
    }
    expect_right({.length_q = 131, .length_k = 300, .dim = 128, .causal = true});
}

TEST_P(EightBits, HeadDimensions) {
    for (const std::size_t dim : {16, 64, 80, 112, 128})
        expect_right({.length_q = 70, .length_k = 140, .dim = dim, .causal = dim % 32 == 0});
}

TEST_P(EightBits, BatchesAndGroupsOfHeads) {
    expect_right({2, 6, 1, 33, 65, 32, false});
    expect_right({2, 6, 2, 33, 65, 32, true});
    expect_right({3, 4, 4, 140, 20, 80, true});
}

TEST_P(EightBits, Strides) {
    const Shape shape{2, 2, 1, 35, 140, 48, true};
    for (const std::size_t offset : {0, 16}) {
        for (const bool heads_in_a_row : {false, true}) {
            const Layout layout{offset, 16, heads_in_a_row};
            expect_right(shape, layout, {});
            expect_right(shape, {}, layout);
        }
    }
}

// Where weights are rounded and so are the sums of the scores, which count more the larger these
// are.
TEST_P(EightBits, TheErrorOfScoresIsPartOfTheBound) {
    const Shape shape{2, 2, 1, 259, 259, 128, false};
    for (const float scale : {1 / std::sqrt(128.0f), 1.0f})
        expect_right(shape, data_of(shape), scale, Growth::kSquareRoot);
}

TEST_P(EightBits, ScalesOfEitherSignAndZero) {
    for (const bool causal : {false, true}) {
        const Shape shape{2, 4, 2, 70, 200, 48, causal};
        Data data = data_of(shape);
        // Of 8 heads of Q with 4 heads of K: all four pairs of signs, and a 0 of each.
        for (const std::size_t head : {1, 2, 6})
            data.q.scales[head] *= -1;
        data.q.scales[4] = 0;
        data.k.scales[1] *= -1;
        data.k.scales[3] = -0.0f;
        data.v.scales[0] *= -1;
        data.v.scales[2] = 0;
        for (const float scale : {0.125f, -0.125f, 0.0f})
            expect_right(shape, data, scale, Growth::kSquareRoot);
    }
    // More rows than keys: rows that see none, beside others.
    const Shape tall{1, 1, 1, 200, 70, 32, true};
    Data data = data_of(tall);
    data.q.scales[0] *= -1;
    expect_right(tall, data, 0.25f, Growth::kSquareRoot);
}

// The three scales of a score overflow and underflow if they are multiplied in the wrong order, and
// so does 1 / sum times a small scale of V.
TEST_P(EightBits, HugeAndTinyScales) {
    const Shape shape{1, 2, 2, 70, 300, 48, true};
    Data data = data_of(shape);
    const auto with = [&](float of_q, float of_k, float of_v, float scale) {
        for (std::size_t head = 0; head < 2; ++head) {
            data.q.scales[head] = of_q;
            data.k.scales[head] = of_k;
            data.v.scales[head] = of_v;
        }
        // The reference has the product of the scales in Q.
        Data same = data;
        const double product = double{of_q} * double{of_k} * double{scale};
        for (std::size_t head = 0; head < 2; ++head) {
            same.q.scales[head] = static_cast<float>(product);
            same.k.scales[head] = 1;
        }
        const auto got = run(shape, data, scale);
        const std::size_t of_rows = shape.length_q * shape.dim;
        const std::size_t of_keys = shape.length_k * shape.dim;
        const Tensors<float> values{same.q.values(of_rows), same.k.values(of_keys), same.v.values(of_keys)};
        const course::VerifyResult result =
            compare(day44::precision(), shape, values, 1.0f, got.out, Growth::kSquareRoot);
        EXPECT_TRUE(result.ok()) << of_q << ", " << of_k << ", " << of_v << ", " << scale << ": "
                                 << result.message();
    };
    with(0x1p64f, 0x1p64f, 1, 0x1p-143f);
    with(-0x1p-100f, 0x1p-100f, 1, 0x1p+120f);
    with(0x1p-100f, 0x1p-100f, 1, 1);
    with(0x1p-8f, 0x1p-8f, 0x1p-124f, 1);
    with(0x1p-8f, 0x1p-8f, -0x1p100f, 1);
}

// In the heads of such a scale, rows that see a key are NaN, and those that see none are zeros.
TEST_P(EightBits, ScalesThatAreNoNumbers) {
    const Shape shape{1, 6, 6, 300, 130, 32, true};
    const float bad[] = {kNan, kInf, -kInf};
    Data data = data_of(shape);
    data.q.scales[0] = kNan;
    data.k.scales[1] = kInf;
    data.q.scales[2] = -kInf;
    data.v.scales[3] = kNan;
    data.q.scales[4] = std::numeric_limits<float>::max();
    data.k.scales[4] = -16;
    const auto got = run(shape, data, 1.0f);
    EXPECT_EQ(got.damage, "");
    const std::size_t head_size = shape.length_q * shape.dim;
    const std::size_t unseeing = shape.length_q - shape.length_k;
    for (std::size_t i = 0; i < got.out.size(); ++i) {
        const auto x = static_cast<float>(got.out[i]);
        if (i % head_size < unseeing * shape.dim) {
            ASSERT_EQ(x, 0.0f) << "element " << i;
        } else {
            ASSERT_EQ(std::isnan(x), i / head_size < 5) << "element " << i;
        }
    }
    // Infinity as the scale of V.
    for (const float scale : {kInf, -kInf}) {
        data = data_of(shape);
        std::fill(data.v.elements.begin(), data.v.elements.end(), E4m3(1.0f));
        std::fill(data.v.scales.begin(), data.v.scales.end(), scale);
        const auto infinite = run(shape, data, 1.0f).out;
        for (std::size_t i = 0; i < infinite.size(); ++i) {
            const bool sees_none = i % head_size < unseeing * shape.dim;
            ASSERT_EQ(static_cast<float>(infinite[i]), sees_none ? 0.0f : scale) << "element " << i;
        }
    }
    for (const float scale : bad) {
        EXPECT_EQ(refusal([&] { run(shape, data, scale); }), "eight-bit attention: scale is " +
                                                                 std::string(std::isnan(scale) ? "nan"
                                                                             : scale > 0       ? "inf"
                                                                                               : "-inf") +
                                                                 "; expected a finite number");
    }
}

TEST_P(EightBits, LargeScores) {
    for (const bool causal : {false, true}) {
        const Shape shape{1, 1, 1, 140, 300, 64, causal};
        for (const float scale : {1.0f, 1000.0f})
            expect_right(shape, data_of(shape), scale, Growth::kLinear);
    }
}

// Row i attends to one key alone, and its result is that key's row of V, exactly: each key must
// meet its own row of V.
TEST_P(EightBits, EachRowFindsItsKey) {
    const Shape shape{1, 1, 1, 256, 256, 128, false};
    std::vector<float> q(256 * 128, 0.0f);
    std::vector<float> k(256 * 128, 0.0f);
    for (std::size_t i = 0; i < 256; ++i) {
        const std::size_t key = i * 37 % 256;
        q[i * 128 + key % 128] = key < 128 ? 8.0f : -8.0f;
        k[i * 128 + i % 128] = i < 128 ? 8.0f : -8.0f;
    }
    Data data = data_of(shape);
    data.q = scaled(q, shape.q(), 1);
    data.k = scaled(k, shape.kv(), 1);
    const auto got = run(shape, data, 1.0f);  // scores 64, 0 and -64
    EXPECT_EQ(got.damage, "");
    const std::vector<float> v = data.v.values(256 * 128);
    for (std::size_t i = 0; i < 256; ++i) {
        for (std::size_t c = 0; c < 128; ++c)
            ASSERT_EQ(static_cast<float>(got.out[i * 128 + c]), v[i * 37 % 256 * 128 + c]) << i << ", " << c;
    }
}

// Each row must see its own keys: rows of V are 1 and -1 in turn.
TEST_P(EightBits, CausalMaskIsExact) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{200, 200}, Lengths{70, 200}, Lengths{200, 70}, Lengths{1, 129}, Lengths{129, 1}}) {
        const Shape shape{1, 1, 1, length_q, length_k, 32, true};
        Data data = data_of(shape);
        data.k = scaled(std::vector<float>(elements(shape.kv()), 0.0f), shape.kv(), 1);
        std::vector<float> v(elements(shape.kv()));
        for (std::size_t i = 0; i < v.size(); ++i)
            v[i] = i / shape.dim % 2 == 0 ? 1.0f : -1.0f;
        data.v = scaled(v, shape.kv(), 1);
        const auto got = run(shape, data, 1.0f);
        EXPECT_EQ(got.damage, "");
        for (std::size_t row = 0; row < length_q; ++row) {
            const std::size_t seen = visible_keys(row, length_q, length_k, true);
            const float expected = seen % 2 == 1 ? 1.0f / static_cast<float>(seen) : 0.0f;
            ASSERT_NEAR(static_cast<float>(got.out[row * shape.dim]), expected, 0.004f * expected + 1e-6f)
                << length_q << " x " << length_k << ", row " << row;
        }
    }
}

TEST_P(EightBits, NothingToDoAndNothingToSee) {
    for (const Shape& shape : {Shape{0, 2, 1, 5, 5, 32, false}, Shape{1, 0, 0, 5, 5, 32, false},
                               Shape{1, 2, 1, 0, 5, 32, true}, Shape{1, 2, 1, 5, 5, 0, false}})
        EXPECT_EQ(run(shape, data_of(shape), 1.0f).damage, "");
    const Shape no_keys{2, 2, 1, 40, 0, 48, false};
    for (const auto x : run(no_keys, data_of(no_keys), 1.0f).out)
        ASSERT_EQ(static_cast<float>(x), 0.0f);
    const Shape rows_without{1, 2, 1, 500, 50, 32, true};
    const auto out = run(rows_without, data_of(rows_without), 1.0f).out;
    for (std::size_t i = 0; i < 450 * 32; ++i)
        ASSERT_EQ(static_cast<float>(out[i]), 0.0f);
    EXPECT_NE(static_cast<float>(out[450 * 32]), 0.0f);
}

TEST_P(EightBits, RefusesWhatDoesNotFit) {
    const auto with = [](const Shape& shape, const Layout& in, std::size_t scales) {
        Data data = data_of(shape);
        data.k.scales.resize(scales, 1.0f);
        return refusal([&] { run(shape, data, 1.0f, in); });
    };
    EXPECT_EQ(with({1, 2, 1, 5, 5, 24, false}, {}, 1),
              "eight-bit attention: dim is 24; TMA expects a multiple of 16");
    EXPECT_EQ(with({1, 2, 1, 5, 5, 144, false}, {}, 1),
              "eight-bit attention: dim is 144; expected at most 128");
    EXPECT_EQ(with({2, 32768, 32768, 0, 0, 16, false}, {}, 65536),
              "eight-bit attention: k has 65536 heads in all batches; expected at most 65535");
    EXPECT_EQ(with({1, 2, 1, 5, 5, 16, false}, {8, 0, false}, 1),
              "eight-bit attention: a row begins between multiples of 16 bytes; TMA expects addresses and "
              "strides that are multiples of 16 bytes");
    EXPECT_EQ(with({1, 2, 1, 5, 5, 16, false}, {}, 2),
              "eight-bit attention: k_scale or v_scale has 2 elements; expected one for each head, 1");
}

}  // namespace
