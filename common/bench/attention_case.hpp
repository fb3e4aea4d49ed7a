// An attention problem with its data, for programs that time versions. verify() compares 48 rows
// of a result: the first, the last, and random ones.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "common/bench/attention.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"

namespace course::attention {

template <class T>
inline constexpr const char* kTypeName = "float";
template <>
inline constexpr const char* kTypeName<__half> = "half";
template <>
inline constexpr const char* kTypeName<__nv_bfloat16> = "bfloat16";

// Rows per problem. The CPU reference would take too long for all of them.
inline constexpr std::size_t kRowsToVerify = 48;

template <class T>
struct Data {
    explicit Data(const Shape& given)
        : shape(given),
          q_host(make_data<T>(size(shape.q()), DataPattern::kNormal, 1)),
          k_host(make_data<T>(size(shape.kv()), DataPattern::kNormal, 2)),
          v_host(make_data<T>(size(shape.kv()), DataPattern::kNormal, 3)),
          q(std::span<const T>(q_host)),
          k(std::span<const T>(k_host)),
          v(std::span<const T>(v_host)),
          out(q_host.size()),
          scale(1 / std::sqrt(static_cast<float>(shape.dim))) {}

    static std::size_t size(const Extents& e) { return e.batch * e.heads * e.length * e.dim; }

    void launch(const Version<T>& version, cudaStream_t stream) {
        const auto& inputs = *this;
        version.launcher({{inputs.q.span(), shape.q()},
                          {inputs.k.span(), shape.kv()},
                          {inputs.v.span(), shape.kv()},
                          {out.span(), shape.q()},
                          scale,
                          shape.causal},
                         stream);
    }

    // Compares kRowsToVerify rows with the reference: the first, random ones, and the last. No
    // other row may contain a NaN.
    VerifyResult verify(const Precision& precision) const {
        const std::vector<T> all = out.to_host();
        const std::size_t rows = shape.batch * shape.heads * shape.length_q;
        const std::size_t checked = std::min(rows, kRowsToVerify);
        std::vector<T> got(checked * shape.dim);
        std::vector<double> expected(got.size());
        std::vector<double> magnitude(got.size());
        const auto count = static_cast<std::ptrdiff_t>(checked);
#pragma omp parallel for
        for (std::ptrdiff_t n = 0; n < count; ++n) {
            const auto number = static_cast<std::size_t>(n);
            Random random(7, number);
            std::size_t row = static_cast<std::size_t>(random.next() % rows);
            if (number < checked / 4) row = number;
            if (number >= checked - checked / 4) row = rows - (checked - number);
            const ReferenceRow reference = reference_of(row, precision);
            for (std::size_t c = 0; c < shape.dim; ++c) {
                got[number * shape.dim + c] = all[row * shape.dim + c];
                expected[number * shape.dim + c] = reference.value[c];
                magnitude[number * shape.dim + c] = reference.bound[c] / FloatTraits<T>::kEpsilon;
            }
        }
        VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
        result.damage = out.damage();
        if (std::any_of(all.begin(), all.end(), [](T x) { return std::isnan(static_cast<float>(x)); }))
            result.damage += " there are NaN in the result";
        return result;
    }

    ReferenceRow reference_of(std::size_t row, const Precision& allowed) const {
        const std::size_t head = row / shape.length_q;
        // Batches follow each other in both tensors, so one index selects batch and head.
        const std::size_t head_kv = head / (shape.heads / shape.heads_kv);
        const std::size_t first = head_kv * shape.length_k * shape.dim;
        const std::size_t count = shape.length_k * shape.dim;
        return reference_row<T>(
            std::span(q_host).subspan(row * shape.dim, shape.dim), std::span(k_host).subspan(first, count),
            std::span(v_host).subspan(first, count),
            visible_keys(row % shape.length_q, shape.length_q, shape.length_k, shape.causal),
            static_cast<double>(scale), allowed);
    }

    Shape shape;
    std::vector<T> q_host, k_host, v_host;
    DeviceBuffer<T> q, k, v;
    GuardedBuffer<T> out;
    float scale;
};

}  // namespace course::attention
