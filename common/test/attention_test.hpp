// What the tests of days that compute attention in one kernel share: tensors with any layout, a run
// of a version, and the comparison with the reference, row by row.
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

// Where [batch, heads, length, dim] lies in its buffer.
struct Layout {
    std::size_t offset = 0;       // elements before the first
    std::size_t padding = 0;      // behind each row; filled with NaN in inputs
    bool heads_in_a_row = false;  // as a projection leaves them: batch, length, heads, dim

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

// Packed values, moved to where `layout` wants them, with NaN between the rows.
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

template <class T>
course::VerifyResult compare(Precision precision, const Shape& shape, const Tensors<T>& data, float scale,
                             const std::vector<T>& got, Growth growth) {
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
            magnitude.push_back(bound / course::FloatTraits<T>::kEpsilon);
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
