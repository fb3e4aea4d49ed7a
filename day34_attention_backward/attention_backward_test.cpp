// Every version of the gradients against the reference, element by element; the reference against
// differences of the forward pass.
#include "attention_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/attention_test.hpp"
#include "common/test/device_test.hpp"

namespace {

using namespace course::attention;
using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::Growth;
using course::refusal;
using day34::forward_on_cpu;
using day34::Gradient;
using day34::Head;

// A version and the type it is for.
template <class T, int INDEX>
struct Listed {
    using Type = T;
    static const day34::Version<T>& version() { return day34::versions<T>()[INDEX]; }
    static Precision precision() {
        if constexpr (std::is_same_v<T, float>) {
            return {};
        } else {
            return tensor_core_precision<T>();
        }
    }
};

// All inputs of a problem, packed.
template <class T>
struct Inputs {
    std::vector<T> q, k, v, out, d_out;
    std::vector<float> lse;
};

template <class T>
std::vector<double> doubles(std::span<const T> values) {
    std::vector<double> result;
    for (const T x : values)
        result.push_back(static_cast<double>(static_cast<float>(x)));
    return result;
}

std::size_t heads_of(const Shape& shape) {
    return shape.batch * shape.heads;
}

template <class T>
std::span<const T> part(const std::vector<T>& all, std::size_t number, std::size_t size) {
    return std::span(all).subspan(number * size, size);
}

// out and lse are those of the forward pass, in double, rounded.
template <class T>
Inputs<T> inputs(const Shape& shape, float scale, DataPattern pattern = DataPattern::kNormal,
                 std::uint64_t seed = kSeed) {
    const Tensors<T> given = tensors<T>(shape, pattern, seed);
    Inputs<T> all{given.q, given.k, given.v, {}, course::make_data<T>(elements(shape.q()), pattern, seed + 3),
                  {}};
    const std::size_t of_q = shape.length_q * shape.dim;
    const std::size_t of_k = shape.length_k * shape.dim;
    for (std::size_t h = 0; h < heads_of(shape); ++h) {
        const auto forward = forward_on_cpu(doubles(part(all.q, h, of_q)), doubles(part(all.k, h, of_k)),
                                            doubles(part(all.v, h, of_k)), shape, static_cast<double>(scale));
        for (const double x : forward.out)
            all.out.push_back(T(static_cast<float>(x)));
        for (const double x : forward.lse)
            all.lse.push_back(static_cast<float>(x));
    }
    return all;
}

template <class T>
struct Outputs {
    std::vector<T> dq, dk, dv;
    std::string damage;
};

template <class T>
Outputs<T> run(const day34::Version<T>& version, const Shape& shape, const Inputs<T>& data, float scale,
               const Layout& in = {}, const Layout& out = {}) {
    Placed<T> q(data.q, shape.q(), in);
    Placed<T> k(data.k, shape.kv(), in);
    Placed<T> v(data.v, shape.kv(), in);
    Placed<T> o(data.out, shape.q(), in);
    Placed<T> d_out(data.d_out, shape.q(), in);
    const DeviceBuffer<float> lse{std::span(data.lse)};
    Placed<T> dq(shape.q(), out);
    Placed<T> dk(shape.kv(), out);
    Placed<T> dv(shape.kv(), out);
    version.launcher({q.view(), k.view(), v.view(), o.view(), d_out.view(), lse.span(), dq.view(), dk.view(),
                      dv.view(), scale, shape.causal},
                     nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    std::size_t written[3] = {};
    Outputs<T> got{dq.values(written[0]), dk.values(written[1]), dv.values(written[2]),
                   dq.buffer().damage() + dk.buffer().damage() + dv.buffer().damage()};
    if (written[0] + written[1] + written[2] > 0) got.damage += " the padding of a row was written";
    return got;
}

// The gradients of one head, in double.
struct HeadGradient {
    std::vector<double> dq, dk, dv;
    std::vector<double> dq_bound, dk_bound, dv_bound;
};

template <class T>
HeadGradient gradient_on_cpu(const Head<T>& head, const Shape& shape, double scale,
                             const Precision& precision) {
    HeadGradient all;
    const auto append = [](std::vector<double>& to, const std::vector<double>& row) {
        to.insert(to.end(), row.begin(), row.end());
    };
    std::vector<day34::GradientRow> rows(shape.length_q);
    std::vector<day34::KeyGradient> keys(shape.length_k);
    const auto count = static_cast<std::ptrdiff_t>(rows.size() + keys.size());
#pragma omp parallel for schedule(dynamic)
    for (std::ptrdiff_t n = 0; n < count; ++n) {
        const auto i = static_cast<std::size_t>(n);
        if (i < rows.size()) {
            rows[i] = query_gradient(head, shape, scale, precision, i);
        } else {
            keys[i - rows.size()] = key_gradient(head, shape, scale, precision, i - rows.size());
        }
    }
    for (const auto& row : rows) {
        append(all.dq, row.value);
        append(all.dq_bound, row.bound);
    }
    for (const auto& [dk, dv] : keys) {
        append(all.dk, dk.value);
        append(all.dk_bound, dk.bound);
        append(all.dv, dv.value);
        append(all.dv_bound, dv.bound);
    }
    return all;
}

template <class T>
void compare(const char* name, std::span<const T> got, const std::vector<double>& expected,
             const std::vector<double>& bound, const Shape& shape, const std::string& damage) {
    std::vector<double> magnitude;
    for (const double b : bound)
        magnitude.push_back(b / course::FloatTraits<T>::kEpsilon);
    course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
    result.damage = damage;
    EXPECT_TRUE(result.ok()) << name << " of " << course::attention::name(shape) << ": " << result.message();
}

template <class V>
class GradientTest : public course::DeviceTest {
  protected:
    using Value = typename V::Type;

    void SetUp() override {
        course::DeviceTest::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = V::version().cannot_run({.dim = 8}); !reason.empty())
            GTEST_SKIP() << reason;
    }

    static void expect_right(const Shape& shape, const Inputs<Value>& data, float scale, Growth growth,
                             const Layout& in = {}, const Layout& out = {}) {
        const Outputs<Value> got = run(V::version(), shape, data, scale, in, out);
        Precision precision = V::precision();
        precision.growth = growth;
        const std::size_t of_q = shape.length_q * shape.dim;
        const std::size_t of_k = shape.length_k * shape.dim;
        for (std::size_t h = 0; h < heads_of(shape); ++h) {
            const Head<Value> head{part(data.q, h, of_q),     part(data.k, h, of_k),
                                   part(data.v, h, of_k),     part(data.out, h, of_q),
                                   part(data.d_out, h, of_q), part(data.lse, h, shape.length_q)};
            const HeadGradient expected = gradient_on_cpu(head, shape, static_cast<double>(scale), precision);
            compare("dQ", part(got.dq, h, of_q), expected.dq, expected.dq_bound, shape, got.damage);
            compare("dK", part(got.dk, h, of_k), expected.dk, expected.dk_bound, shape, got.damage);
            compare("dV", part(got.dv, h, of_k), expected.dv, expected.dv_bound, shape, got.damage);
        }
    }

    static void expect_right(const Shape& shape, const Layout& in = {}, const Layout& out = {}) {
        const float scale = 1 / std::sqrt(static_cast<float>(shape.dim));
        expect_right(shape, inputs<Value>(shape, scale), scale, Growth::kSquareRoot, in, out);
    }

    static bool float32() { return std::is_same_v<Value, float>; }
};

using Versions =
    testing::Types<Listed<float, 0>, Listed<float, 1>, Listed<float, 2>, Listed<float, 3>, Listed<__half, 0>,
                   Listed<__half, 1>, Listed<__half, 2>, Listed<__nv_bfloat16, 0>, Listed<__nv_bfloat16, 1>>;
TYPED_TEST_SUITE(GradientTest, Versions, VersionName);

// Around a warp's 16 keys, tiles of 32, 64 and 128, and several of them. 130 x 128: the first row
// of a tile sees all keys of a tile but the last one.
TYPED_TEST(GradientTest, Lengths) {
    using Lengths = std::pair<std::size_t, std::size_t>;
    for (const auto& [length_q, length_k] :
         {Lengths{1, 1}, Lengths{15, 33}, Lengths{64, 128}, Lengths{65, 129}, Lengths{130, 63},
          Lengths{130, 128}, Lengths{200, 260}, Lengths{257, 100}}) {
        // Without a mask, more rows than keys are like fewer.
        const bool is_like_others = length_q > 100 && length_q > length_k;
        for (const bool causal : {false, true}) {
            if (causal || !is_like_others)
                this->expect_right({.length_q = length_q, .length_k = length_k, .dim = 40, .causal = causal});
        }
    }
}

TYPED_TEST(GradientTest, HeadDimensions) {
    for (const std::size_t dim : {8, 16, 64, 72, 128})
        this->expect_right({.length_q = 70, .length_k = 140, .dim = dim, .causal = dim % 16 == 0});
    if (!this->float32()) return;
    for (const std::size_t dim : {1, 7, 65, 127})
        this->expect_right({.length_q = 35, .length_k = 34, .dim = dim, .causal = true});
}

// More tiles of rows than there are stages, of 64 rows and of 128.
TYPED_TEST(GradientTest, StagesAreUsedAgain) {
    if (this->float32()) GTEST_SKIP() << "FP32 versions have one stage";
    this->expect_right({.length_q = 400, .length_k = 70, .dim = 72});
    this->expect_right({.length_q = 700, .length_k = 40, .dim = 64, .causal = true});
}

TYPED_TEST(GradientTest, BatchesAndHeads) {
    this->expect_right({2, 3, 3, 33, 65, 32, false});
    this->expect_right({3, 2, 2, 140, 20, 72, true});
}

// Between rows of the inputs there are NaN.
TYPED_TEST(GradientTest, Strides) {
    const Shape shape{2, 2, 2, 35, 70, 40, true};
    const std::size_t step = this->float32() ? 1 : 8;
    for (const bool heads_in_a_row : {false, true}) {
        const Layout layout{step, step, heads_in_a_row};
        this->expect_right(shape, layout, {});
        this->expect_right(shape, {}, layout);
    }
}

TYPED_TEST(GradientTest, RandomShapes) {
    course::Random random(kSeed);
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    for (int round = 0; round < 4; ++round) {
        const std::size_t heads = 1 + random.below(course::is_cpu_stand_in() ? 2 : 3);
        const Shape shape{1 + random.below(2),
                          heads,
                          heads,
                          1 + random.below(250),
                          1 + random.below(200),
                          8 * (1 + random.below(16)),
                          random.below(2) == 1};
        this->expect_right(shape);
    }
}

// Scores of +-100: one key of a row gets nearly all the weight. And scores that are all -512, of
// which an exponential alone would overflow.
TYPED_TEST(GradientTest, LargeScores) {
    using T = typename TypeParam::Type;
    for (const bool causal : {false, true}) {
        const Shape shape{1, 1, 1, 70, 150, 64, causal};
        this->expect_right(shape, inputs<T>(shape, 1.0f), 1.0f, Growth::kLinear);
    }
    // Without a mask, those of keys that do not exist would be 0 beside them.
    for (const bool causal : {false, true}) {
        const Shape square{1, 1, 1, 70, 70, 64, causal};
        Inputs<T> data = inputs<T>(square, 1.0f);
        std::fill(data.q.begin(), data.q.end(), T(1.0f));
        std::fill(data.k.begin(), data.k.end(), T(-8.0f));
        std::fill(data.lse.begin(), data.lse.end(), -511.0f);
        this->expect_right(square, data, 1.0f, Growth::kLinear);
    }
}

TYPED_TEST(GradientTest, DataPatterns) {
    using T = typename TypeParam::Type;
    const Shape shape{1, 1, 1, 40, 50, 32, false};
    for (const DataPattern pattern :
         {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kSorted})
        this->expect_right(shape, inputs<T>(shape, 0.125f, pattern), 0.125f, Growth::kLinear);
}

// Rows that see no key have a gradient of 0, and so have all keys if there is no row.
TYPED_TEST(GradientTest, NothingToSee) {
    using T = typename TypeParam::Type;
    this->expect_right({1, 2, 2, 300, 50, 32, true});
    for (const Shape& shape : {Shape{2, 2, 2, 40, 0, 48, false}, Shape{2, 2, 2, 0, 40, 48, true}})
        this->expect_right(shape, inputs<T>(shape, 1.0f), 1.0f, Growth::kLinear);
    for (const Shape& shape :
         {Shape{0, 2, 2, 5, 5, 32, false}, Shape{1, 0, 0, 5, 5, 32, false}, Shape{1, 2, 2, 5, 5, 0, false}}) {
        EXPECT_EQ(run(TypeParam::version(), shape, inputs<T>(shape, 1.0f), 1.0f).damage, "");
    }
}

TYPED_TEST(GradientTest, OrderedVersionsGiveTheSameBitsEveryTime) {
    using T = typename TypeParam::Type;
    const std::string name = TypeParam::version().name;
    if (!name.ends_with("ordered") && name != "naive" && name != "recompute")
        GTEST_SKIP() << name << " adds in any order";
    const Shape shape{1, 2, 2, 130, 260, 64, true};
    const Inputs<T> data = inputs<T>(shape, 0.125f);
    const auto bits = [&] {
        const Outputs<T> got = run(TypeParam::version(), shape, data, 0.125f);
        return std::vector{doubles(std::span<const T>(got.dq)), doubles(std::span<const T>(got.dk)),
                           doubles(std::span<const T>(got.dv))};
    };
    const auto first = bits();
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(bits(), first);
}

// The plain kernel of the forward pass, for programs.
TYPED_TEST(GradientTest, ForwardPass) {
    using T = typename TypeParam::Type;
    for (const Shape& shape : {Shape{2, 2, 2, 70, 90, 72, false}, Shape{1, 2, 2, 90, 33, 40, true}}) {
        const Inputs<T> data = inputs<T>(shape, 0.2f);
        Placed<T> q(data.q, shape.q(), {});
        Placed<T> k(data.k, shape.kv(), {});
        Placed<T> v(data.v, shape.kv(), {});
        Placed<T> out(shape.q(), {});
        course::GuardedBuffer<float> lse(data.lse.size());
        Gradient<T> gradient;
        gradient.q = q.view();
        gradient.k = k.view();
        gradient.v = v.view();
        gradient.scale = 0.2f;
        gradient.causal = shape.causal;
        day34::forward(gradient, out.view(), lse.span(), nullptr);
        std::size_t written = 0;
        const std::vector<T> got = out.values(written);
        for (std::size_t i = 0; i < got.size(); ++i) {
            const float expected = static_cast<float>(data.out[i]);
            ASSERT_NEAR(static_cast<float>(got[i]), expected,
                        2 * course::FloatTraits<T>::kEpsilon * std::abs(expected) + 1e-5);
        }
        const std::vector<float> got_lse = lse.to_host();
        for (std::size_t i = 0; i < got_lse.size(); ++i) {
            if (data.lse[i] == -kInf) {
                ASSERT_EQ(got_lse[i], -kInf);
            } else {
                ASSERT_NEAR(got_lse[i], data.lse[i], 1e-5);
            }
        }
        EXPECT_EQ(out.buffer().damage() + lse.damage(), "");
    }
}

template <class T>
std::string refusal_of(const day34::Version<T>& version, Gradient<T> gradient) {
    return refusal([&] { version.launcher(gradient, nullptr); });
}

TYPED_TEST(GradientTest, RefusesWhatDoesNotFit) {
    using T = typename TypeParam::Type;
    const Extents e{1, 2, 5, 16};
    const std::size_t count = elements(e);
    DeviceBuffer<T> in(4 * count);
    DeviceBuffer<T> out(3 * count);
    const DeviceBuffer<float> lse(10);
    const auto input = [&](const Extents& extents) {
        return HeadsView<const T>(HeadsView<T>(in.span(), extents));
    };
    const auto output = [&](std::size_t number) {
        return HeadsView<T>(out.span().subspan(number * count, count), e);
    };
    const Gradient<T> good{input(e),   input(e),  input(e),  input(e),  input(e),
                           lse.span(), output(0), output(1), output(2), 1.0f};
    const auto with = [&](auto change) {
        Gradient<T> g = good;
        change(g);
        return refusal_of(TypeParam::version(), g);
    };
    EXPECT_EQ(with([&](auto& g) {
                  g.d_out = input({1, 2, 4, 16});
              }),
              "attention backward: d_out is 1 x 2 x 4 x 16 and q 1 x 2 x 5 x 16; expected the same");
    EXPECT_EQ(with([&](auto& g) {
                  g.v = input({1, 2, 6, 16});
              }),
              "attention backward: v is 1 x 2 x 6 x 16 and k 1 x 2 x 5 x 16; expected the same");
    EXPECT_EQ(with([&](auto& g) {
                  g.q = g.out = g.d_out = input({1, 1, 5, 16});
                  g.dq = HeadsView<T>(out.span(), {1, 1, 5, 16});
              }),
              "attention backward: q is 1 x 1 x 5 x 16 and k 1 x 2 x 5 x 16; expected the same batch, heads "
              "and dim");
    EXPECT_EQ(with([&](auto& g) { g.lse = lse.span().subspan(0, 9); }),
              "attention backward: lse has 9 elements; expected 10, one for each row of q");
    EXPECT_EQ(with([&](auto& g) { g.scale = 0; }),
              "attention backward: scale is 0; expected a finite number above 0");
    EXPECT_EQ(with([&](auto& g) { g.dv = g.dk; }),
              "attention backward: dk overlaps another argument; expected memory of its own");
    EXPECT_EQ(with([&](auto& g) { g.dq = HeadsView<T>(in.span(), e); }),
              "attention backward: dq overlaps another argument; expected memory of its own");
    EXPECT_EQ(with([&](auto& g) {
                  g.dq = HeadsView<T>(out.span(), e, {160, 80, 8});
              }),
              "attention backward: elements of dq coincide; expected strides under which each has a place of "
              "its own");
}

// --- The reference -------------------------------------------------------------------------------

// The loss is the sum of all d_out[i] out[i]. Central differences of it in double, one element of
// an input at a time: their error is of the order of step^2, and of 2^-52 / step.
TEST(Reference, IsTheDerivativeOfTheForwardPass) {
    for (const Shape& shape : {Shape{1, 1, 1, 5, 7, 6, false}, Shape{1, 1, 1, 7, 5, 3, true}}) {
        const double scale = 0.7;
        const auto data = inputs<float>(shape, 0.7f);
        std::vector<double> q = doubles(std::span<const float>(data.q));
        std::vector<double> k = doubles(std::span<const float>(data.k));
        std::vector<double> v = doubles(std::span<const float>(data.v));
        const auto loss = [&] {
            const auto out = forward_on_cpu(q, k, v, shape, scale).out;
            double sum = 0;
            for (std::size_t i = 0; i < out.size(); ++i)
                sum += static_cast<double>(data.d_out[i]) * out[i];
            return sum;
        };
        // out and lse in float cost the reference about 1e-6.
        const auto forward = forward_on_cpu(q, k, v, shape, scale);
        Inputs<float> rounded = data;
        std::transform(forward.out.begin(), forward.out.end(), rounded.out.begin(),
                       [](double x) { return static_cast<float>(x); });
        std::transform(forward.lse.begin(), forward.lse.end(), rounded.lse.begin(),
                       [](double x) { return static_cast<float>(x); });
        const HeadGradient got = gradient_on_cpu<float>(
            {rounded.q, rounded.k, rounded.v, rounded.out, rounded.d_out, rounded.lse}, shape, scale, {});
        const auto check = [&](const char* name, std::vector<double>& input,
                               const std::vector<double>& gradient) {
            constexpr double kStep = 1e-4;
            for (std::size_t i = 0; i < input.size(); ++i) {
                const double before = input[i];
                input[i] = before + kStep;
                const double above = loss();
                input[i] = before - kStep;
                const double below = loss();
                input[i] = before;
                EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 5e-6) << name << " " << i;
            }
        };
        check("dq", q, got.dq);
        check("dk", k, got.dk);
        check("dv", v, got.dv);
    }
}

}  // namespace
