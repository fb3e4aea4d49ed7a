// Shared by the tests of the days that compute attention in one kernel: tensors with any layout, a
// run of a version, and the row-by-row comparison with the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/bench/attention.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/test/device_test.hpp"

namespace course::attention {
namespace {

constexpr std::uint64_t kSeed = 25;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::size_t elements(const Extents& e) {
    return e.batch * e.heads * e.length * e.dim;
}

// The layout of [batch, heads, length, dim] in its buffer.
struct Layout {
    std::size_t offset = 0;       // elements before the first
    std::size_t padding = 0;      // after each row; filled with NaN in inputs
    bool heads_in_a_row = false;  // as a projection stores them: batch, length, heads, dim

    Strides strides(const Extents& e) const {
        const std::size_t row = e.dim + padding;
        if (heads_in_a_row) return {e.length * e.heads * row, row, e.heads * row};
        return {e.heads * e.length * row, e.length * row, row};
    }
    std::size_t size(const Extents& e) const { return e.batch * e.heads * e.length * (e.dim + padding); }
};

template <class T>
struct Tensors {
    std::vector<T> q, k, v;
};

template <class T>
Tensors<T> tensors(const Shape& shape, course::DataPattern pattern = course::DataPattern::kNormal,
                   std::uint64_t seed = kSeed) {
    return {course::make_data<T>(elements(shape.q()), pattern, seed),
            course::make_data<T>(elements(shape.kv()), pattern, seed + 1),
            course::make_data<T>(elements(shape.kv()), pattern, seed + 2)};
}

// Copies packed values into the given layout, with NaN between the rows.
template <class T>
class Placed {
  public:
    Placed(const std::vector<T>& values, const Extents& extents, const Layout& layout)
        : extents_(extents),
          strides_(layout.strides(extents)),
          host_(layout.size(extents), T(kNan)),
          buffer_(host_.size(), layout.offset) {
        for_each([&](std::size_t from, std::size_t to) { host_[to] = values[from]; });
        buffer_.copy_from(host_);
    }
    Placed(const Extents& extents, const Layout& layout)
        : extents_(extents),
          strides_(layout.strides(extents)),
          buffer_(layout.size(extents), layout.offset) {}

    HeadsView<T> view() { return {buffer_.span(), extents_, strides_}; }

    // Packed again. `written` counts the elements between rows that were overwritten.
    std::vector<T> values(std::size_t& written) const {
        std::vector<T> all = buffer_.to_host();
        std::vector<T> result(elements(extents_));
        for_each([&](std::size_t to, std::size_t from) {
            result[to] = all[from];
            all[from] = T(kNan);
        });
        written = static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [](T x) { return !std::isnan(static_cast<float>(x)); }));
        return result;
    }

    const GuardedBuffer<T>& buffer() const { return buffer_; }

  private:
    template <class Visit>
    void for_each(Visit visit) const {
        std::size_t index = 0;
        for (std::size_t b = 0; b < extents_.batch; ++b)
            for (std::size_t h = 0; h < extents_.heads; ++h)
                for (std::size_t i = 0; i < extents_.length; ++i)
                    for (std::size_t c = 0; c < extents_.dim; ++c)
                        visit(index++, b * strides_.batch + h * strides_.head + i * strides_.row + c);
    }

    Extents extents_;
    Strides strides_;
    std::vector<T> host_;
    GuardedBuffer<T> buffer_;
};

template <class T>
struct Result {
    std::vector<T> out;
    std::string damage;
};

template <class T>
Result<T> run(const Version<T>& version, const Shape& shape, const Tensors<T>& data, float scale,
              const Layout& in = {}, const Layout& out = {}) {
    Placed<T> q(data.q, shape.q(), in);
    Placed<T> k(data.k, shape.kv(), in);
    Placed<T> v(data.v, shape.kv(), in);
    Placed<T> result(shape.q(), out);
    version.launcher({q.view(), k.view(), v.view(), result.view(), scale, shape.causal}, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    std::size_t written = 0;
    Result<T> got{result.values(written), result.buffer().damage()};
    if (written > 0) got.damage += " the padding of a row of out was written";
    return got;
}

// R: the type of the result.
template <class T, class R>
course::VerifyResult compare(Precision precision, const Shape& shape, const Tensors<T>& data, float scale,
                             const std::vector<R>& got, Growth growth) {
    precision.growth = growth;
    std::vector<double> expected;
    std::vector<double> magnitude;
    const std::size_t head_size = shape.length_k * shape.dim;
    for (std::size_t row = 0; row < shape.batch * shape.heads * shape.length_q; ++row) {
        const std::size_t head = row / shape.length_q;
        const std::size_t head_kv =
            head / shape.heads * shape.heads_kv + head % shape.heads / (shape.heads / shape.heads_kv);
        const auto reference =
            reference_row<T>(std::span(data.q).subspan(row * shape.dim, shape.dim),
                             std::span(data.k).subspan(head_kv * head_size, head_size),
                             std::span(data.v).subspan(head_kv * head_size, head_size),
                             visible_keys(row % shape.length_q, shape.length_q, shape.length_k, shape.causal),
                             static_cast<double>(scale), precision);
        expected.insert(expected.end(), reference.value.begin(), reference.value.end());
        for (const double bound : reference.bound)
            magnitude.push_back(bound / course::FloatTraits<R>::kEpsilon);
    }
    return course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
}

// V: a version and the type it is for. V::Type, V::version(), V::precision().
template <class V>
class FusedTest : public course::DeviceTest {
  protected:
    using Value = typename V::Type;

    void SetUp() override {
        course::DeviceTest::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = V::version().cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    static float usual_scale(const Shape& shape) { return 1 / std::sqrt(static_cast<float>(shape.dim)); }

    static void expect_right(const Shape& shape, const Tensors<Value>& data, float scale, Growth growth,
                             const Layout& in = {}, const Layout& out = {}) {
        const Result<Value> got = run(V::version(), shape, data, scale, in, out);
        course::VerifyResult result = compare(V::precision(), shape, data, scale, got.out, growth);
        result.damage = got.damage;
        EXPECT_TRUE(result.ok()) << name(shape) << ", scale " << scale << ": " << result.message();
    }

    static void expect_right(const Shape& shape, const Layout& in = {}, const Layout& out = {}) {
        expect_right(shape, tensors<Value>(shape), usual_scale(shape), Growth::kSquareRoot, in, out);
    }

    // The score of key i is i `step`. If it rises, every tile has a new maximum; if it falls, only
    // the first one has.
    static void expect_right_for_scores_in_steps(std::size_t keys, float step) {
        const Shape shape{1, 1, 1, 40, keys, 32, false};
        Tensors<Value> data = tensors<Value>(shape);
        std::fill(data.q.begin(), data.q.end(), Value(1.0f));
        for (std::size_t i = 0; i < data.k.size(); ++i)
            data.k[i] = Value(static_cast<float>(i / shape.dim) * step);
        expect_right(shape, data, 0.03125f, Growth::kLinear);
    }

    // The score of `key` is beyond the largest float: the rows that see it become NaN, and no
    // others.
    static void expect_nan_where_a_score_overflows(std::size_t key) {
        const Shape shape{1, 1, 1, 140, 140, 32, true};
        Tensors<Value> data = tensors<Value>(shape);
        std::fill(data.q.begin(), data.q.end(), Value(1.0f));
        std::fill(data.k.begin(), data.k.end(), Value(0.0f));
        std::fill_n(data.k.begin() + static_cast<std::ptrdiff_t>(key * shape.dim), shape.dim, Value(2.0f));
        const std::vector<Value> got = run(V::version(), shape, data, 1e38f).out;
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(std::isnan(static_cast<float>(got[i])), i / shape.dim >= key)
                << "key " << key << ", row " << i / shape.dim;
        }
    }

    // Each row must see exactly its own keys. Rows of V are 1 and -1 alternately, so one key too
    // many or too few changes the mean.
    static void expect_exact_causal_mask(std::size_t length_q, std::size_t length_k) {
        const Shape shape{1, 1, 1, length_q, length_k, 32, true};
        Tensors<Value> data = tensors<Value>(shape);
        std::fill(data.k.begin(), data.k.end(), Value(0.0f));
        for (std::size_t i = 0; i < data.v.size(); ++i)
            data.v[i] = Value(i / shape.dim % 2 == 0 ? 1.0f : -1.0f);
        const Result<Value> got = run(V::version(), shape, data, 1.0f);
        EXPECT_EQ(got.damage, "");
        for (std::size_t i = 0; i < got.out.size(); ++i) {
            const std::size_t row = i / shape.dim;
            const std::size_t seen = visible_keys(row, length_q, length_k, true);
            const double expected = seen % 2 == 0 ? 0.0 : 1.0 / static_cast<double>(seen);
            ASSERT_NEAR(static_cast<float>(got.out[i]), expected, expected * 0x1p-8)
                << name(shape) << ", row " << row;
        }
    }

    // A NaN in Q affects only its row; a NaN in K affects the rows that see its key.
    static void expect_nan_in_q_and_k_stays_in_its_rows() {
        const Shape shape{1, 1, 1, 100, 150, 64, true};
        Tensors<Value> data = tensors<Value>(shape);
        data.q[7 * shape.dim + 11] = Value(kNan);
        data.k[120 * shape.dim + 60] = Value(kNan);
        const Result<Value> got = run(V::version(), shape, data, 0.125f);
        for (std::size_t i = 0; i < got.out.size(); ++i) {
            const std::size_t row = i / shape.dim;
            EXPECT_EQ(std::isnan(static_cast<float>(got.out[i])), row == 7 || row + 50 >= 120)
                << "row " << row;
        }
    }

    // Covers empty results, shapes without keys, and the rows of the causal shape
    // `more_rows_than_keys` that see no key.
    static void expect_zeros_where_nothing_is_seen(const Shape& more_rows_than_keys) {
        for (const Shape& shape :
             {Shape{0, 2, 1, 5, 5, 32, false}, Shape{1, 0, 0, 5, 5, 32, false},
              Shape{1, 2, 1, 0, 5, 32, true}, Shape{1, 2, 1, 5, 5, 0, false}, Shape{1, 2, 1, 0, 0, 0, false}})
            EXPECT_EQ(run(V::version(), shape, tensors<Value>(shape), 1.0f).damage, "");
        const Shape no_keys{2, 2, 1, 40, 0, 48, false};
        for (const Value x : run(V::version(), no_keys, tensors<Value>(no_keys), 1.0f).out)
            ASSERT_EQ(static_cast<float>(x), 0.0f);
        const Shape& shape = more_rows_than_keys;
        const std::vector<Value> out = run(V::version(), shape, tensors<Value>(shape), 1.0f).out;
        const std::size_t unseeing = (shape.length_q - shape.length_k) * shape.dim;
        for (std::size_t i = 0; i < unseeing; ++i)
            ASSERT_EQ(static_cast<float>(out[i]), 0.0f);
        EXPECT_NE(static_cast<float>(out[unseeing]), 0.0f);
    }
};

struct VersionName {
    template <class V>
    static std::string GetName(int) {
        const std::string type = std::is_same_v<typename V::Type, float>    ? "float"
                                 : std::is_same_v<typename V::Type, __half> ? "half"
                                                                            : "bfloat16";
        return type + "_" + V::version().name;
    }
};

}  // namespace
}  // namespace course::attention
