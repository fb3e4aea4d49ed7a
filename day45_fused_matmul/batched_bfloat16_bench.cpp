// Batched products of BF16 matrices, by every version of batched_bfloat16.hpp and by cuBLAS.
#include "batched_bfloat16_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batched_bfloat16.hpp"
#include "common/data_pattern.hpp"
#include "common/device_buffer.hpp"
#include "common/guarded_buffer.hpp"
#include "common/verify.hpp"
#include "fused_matmul_peer.hpp"

namespace day45 {
namespace {

constexpr double kMostOnHost = 5e8;  // multiply-adds

// Products whose elements the host works out, one by one: all, or evenly spaced ones, the first and the last among them.
std::vector<std::size_t> sample_of(const Shape& s) {
    const double multiply_adds =
        std::max(1.0, static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k));
    const double affordable = std::clamp(kMostOnHost / multiply_adds, 2.0, 1e6);
    const std::size_t size = std::min(s.count, static_cast<std::size_t>(affordable));
    std::vector<std::size_t> sample(size);
    for (std::size_t i = 0; i < size; ++i)
        sample[i] = size == 1 ? 0 : i * (s.count - 1) / (size - 1);
    return sample;
}

// Those of the matrices of `size` elements that are in the sample, one after the other.
template <class T>
std::vector<T> matrices_of(std::span<const T> all, const std::vector<std::size_t>& sample, std::size_t size) {
    std::vector<T> result;
    result.reserve(sample.size() * size);
    for (const std::size_t i : sample) {
        const auto chosen = all.subspan(i * size, size);
        result.insert(result.end(), chosen.begin(), chosen.end());
    }
    return result;
}

std::vector<float> as_floats(std::span<const __nv_bfloat16> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](__nv_bfloat16 x) { return static_cast<float>(x); });
    return floats;
}

// rows x cols of each product, as they lie in memory.
std::vector<__nv_bfloat16> stored(const std::vector<float>& packed, Op op, std::size_t rows,
                                  std::size_t cols) {
    std::vector<__nv_bfloat16> result(packed.size());
    for (std::size_t i = 0; i < packed.size(); ++i) {
        const std::size_t e = i % (rows * cols);
        result[op == Op::kNone ? i : i - e + e % cols * rows + e / cols] = __nv_bfloat16(packed[i]);
    }
    return result;
}

// Of each row of each C, sum_j w_j C(row, j), with weights from 1 to 2. In double from the factors, as op(A) (op(B) w).
struct RowSums {
    std::vector<double> values, magnitudes;
};

double weight(std::size_t column, std::size_t columns) {
    return 1 + static_cast<double>(column) / static_cast<double>(columns);
}

RowSums row_sums_of(const Shape& s, std::span<const float> a, std::span<const float> b) {
    RowSums sums{std::vector<double>(s.count * s.m), std::vector<double>(s.count * s.m)};
#pragma omp parallel for
    for (std::ptrdiff_t product = 0; product < static_cast<std::ptrdiff_t>(s.count); ++product) {
        const auto i = static_cast<std::size_t>(product);
        std::vector<double> of_b(s.k);
        std::vector<double> magnitude_of_b(s.k);
        for (std::size_t p = 0; p < s.k; ++p) {
            for (std::size_t j = 0; j < s.n; ++j) {
                const double term = weight(j, s.n) * static_cast<double>(b[(i * s.k + p) * s.n + j]);
                of_b[p] += term;
                magnitude_of_b[p] += std::abs(term);
            }
        }
        for (std::size_t row = i * s.m; row < (i + 1) * s.m; ++row) {
            for (std::size_t p = 0; p < s.k; ++p) {
                const auto x = static_cast<double>(a[row * s.k + p]);
                sums.values[row] += x * of_b[p];
                sums.magnitudes[row] += std::abs(x) * magnitude_of_b[p];
            }
        }
    }
    return sums;
}

struct Products {
    Products(const Shape& s, Op of_a, Op of_b)
        : shape(s),
          op_a(of_a),
          op_b(of_b),
          sample(sample_of(s)),
          product(sample.size() * s.m * s.n),
          magnitude(product.size()),
          c(s.count * s.m * s.n) {
        const auto make = [](std::size_t size, std::uint64_t seed) {
            return as_floats(
                course::make_data<__nv_bfloat16>(size, course::DataPattern::kSignedUniform, seed));
        };
        const std::vector<float> a_host = make(s.count * s.m * s.k, 1);
        const std::vector<float> b_host = make(s.count * s.k * s.n, 2);
        a = course::DeviceBuffer<__nv_bfloat16>(
            std::span<const __nv_bfloat16>(stored(a_host, op_a, s.m, s.k)));
        b = course::DeviceBuffer<__nv_bfloat16>(
            std::span<const __nv_bfloat16>(stored(b_host, op_b, s.k, s.n)));
        multiply_on_cpu({sample.size(), s.m, s.n, s.k}, 1, matrices_of<float>(a_host, sample, s.m * s.k),
                        matrices_of<float>(b_host, sample, s.k * s.n), 0, product, magnitude);
        row_sums = row_sums_of(s, a_host, b_host);
    }

    Bfloat16Matmul matmul() {
        const auto batch = [&](auto& buffer, Op op, std::size_t rows, std::size_t cols) {
            return Batch<const __nv_bfloat16>{.first = op == Op::kNone
                                                           ? std::as_const(buffer).matrix(rows, cols)
                                                           : std::as_const(buffer).matrix(cols, rows),
                                              .count = shape.count,
                                              .stride = rows * cols};
        };
        return {
            .factors = {batch(a, op_a, shape.m, shape.k), batch(b, op_b, shape.k, shape.n), op_a, op_b},
            .c = {.first = c.matrix(shape.m, shape.n), .count = shape.count, .stride = shape.m * shape.n}};
    }

    // The sample element by element. Of all products the weighted sum of each row: an element that is missing, wrong or in another's place
    // changes it by far more than rounding does. Products differ in nothing but where they lie, so what is wrong only for some elements of a
    // product is wrong in the sample, too.
    course::VerifyResult verify() const {
        const course::Bound bound{.terms = shape.k + 1, .growth = course::Growth::kSquareRoot};
        const std::vector<float> got = c.to_host();
        std::vector<float> sums(row_sums.values.size());
#pragma omp parallel for
        for (std::ptrdiff_t row = 0; row < static_cast<std::ptrdiff_t>(sums.size()); ++row) {
            double sum = 0;
            for (std::size_t j = 0; j < shape.n; ++j)
                sum += weight(j, shape.n) *
                       static_cast<double>(got[static_cast<std::size_t>(row) * shape.n + j]);
            sums[static_cast<std::size_t>(row)] = static_cast<float>(sum);
        }
        const auto of_all = course::verify(sums, row_sums.values, bound, row_sums.magnitudes, shape.m);
        course::VerifyResult result = course::verify(matrices_of<float>(got, sample, shape.m * shape.n),
                                                     product, bound, magnitude, shape.n);
        result.damage = c.damage();
        if (!of_all.ok()) result.damage += " weighted sums of rows: " + of_all.message();
        return result;
    }

    Shape shape;
    Op op_a, op_b;
    std::vector<std::size_t> sample;
    std::vector<double> product, magnitude;  // of the sample
    RowSums row_sums;
    course::DeviceBuffer<__nv_bfloat16> a, b;
    course::GuardedBuffer<float> c;
};

}  // namespace

course::Case make_batched_bfloat16_case(const course::Dims& dims, Op op_a, Op op_b) {
    if (dims.size() != 4) return {};
    const Shape shape{dims[0], dims[1], dims[2], dims[3]};
    const auto data = std::make_shared<Products>(shape, op_a, op_b);
    const auto letter = [](Op op) { return op == Op::kNone ? "N" : "T"; };
    course::Case result{.problem = fmt::format("batched_bfloat16 {}x{}x{}x{} {}{}", shape.count, shape.m,
                                               shape.n, shape.k, letter(op_a), letter(op_b)),
                        .dtype = "bfloat16 to float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    const course::Work work = bfloat16_variants().front().work(shape);
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = make_cublas(data->matmul()),
                                  .work = work,
                                  .cannot_run = why_no_cublas()});
    for (const BatchedBfloat16& variant : bfloat16_variants()) {
        result.contestants.push_back(
            {.name = variant.name,
             .launch = [data, &variant](cudaStream_t stream) { variant.launcher(data->matmul(), stream); },
             .work = work,
             .cannot_run = variant.cannot_run(shape)});
    }
    return result;
}

}  // namespace day45
