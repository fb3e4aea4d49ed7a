// The reference of day 28: every pass as the sums that define it, in double, on all cores.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "beyond/winograd_matrices.hpp"
#include "common/check/require.hpp"
#include "conv_layers.hpp"

namespace day28 {
namespace {

using course::require;

std::size_t index(int i) {
    return static_cast<std::size_t>(i);
}

void check_operands(const char* function, Pass pass, const Shape& shape, std::span<const float> a,
                    std::span<const float> b) {
    const Lengths expected = lengths(pass, shape);
    require(a.size() == expected.a && b.size() == expected.b, function, ": operands of ", a.size(), " and ",
            b.size(), " elements for ", to_text(shape), "; expected ", expected.a, " and ", expected.b);
}

// Which outputs i of `count` have their element `tap` of the filter inside the image: [begin, end).
struct Range {
    int begin;
    int end;
};
Range inside(int count, int extent, int tap, const Shape& shape) {
    Range range{0, count};
    while (range.begin < count && range.begin * shape.stride - shape.padding + tap < 0)
        ++range.begin;
    while (range.end > range.begin && (range.end - 1) * shape.stride - shape.padding + tap >= extent)
        --range.end;
    return range;
}

// For image n, filter k and channel c: body(x, w, y, count), where `count` outputs from index y on
// have their operands at x, x + stride, ... and at w.
template <class Body>
void for_each_row(const Shape& shape, int n, int k, int c, const Body& body) {
    for (int r = 0; r < shape.r; ++r) {
        const Range rows = inside(shape.p(), shape.h, r, shape);
        for (int s = 0; s < shape.s; ++s) {
            const Range cols = inside(shape.q(), shape.w, s, shape);
            if (cols.begin == cols.end) continue;
            for (int p = rows.begin; p < rows.end; ++p) {
                const int row = p * shape.stride - shape.padding + r;
                const int col = cols.begin * shape.stride - shape.padding + s;
                body(index(((n * shape.c + c) * shape.h + row) * shape.w + col),
                     index(((k * shape.c + c) * shape.r + r) * shape.s + s),
                     index(((n * shape.k + k) * shape.p() + p) * shape.q() + cols.begin),
                     index(cols.end - cols.begin));
            }
        }
    }
}

}  // namespace

Expected pass_on_cpu(Pass pass, const Shape& shape, std::span<const float> a, std::span<const float> b) {
    check_operands("pass_on_cpu", pass, shape, a, b);
    Expected result;
    result.values.resize(lengths(pass, shape).out);
    result.magnitude.resize(result.values.size());
    double* const values = result.values.data();
    double* const magnitude = result.magnitude.data();
    const auto add = [=](std::size_t to, float first, float second) {
        const double product = static_cast<double>(first) * static_cast<double>(second);
        values[to] += product;
        magnitude[to] += std::abs(product);
    };
    const std::size_t stride = index(shape.stride);
    // Threads share the outer two loops, so that each of them has results of its own.
    if (pass == Pass::kForward) {
#pragma omp parallel for collapse(2)
        for (int n = 0; n < shape.n; ++n)
            for (int k = 0; k < shape.k; ++k)
                for (int c = 0; c < shape.c; ++c)
                    for_each_row(shape, n, k, c,
                                 [&](std::size_t x, std::size_t w, std::size_t y, std::size_t count) {
                                     for (std::size_t i = 0; i < count; ++i)
                                         add(y + i, a[x + i * stride], b[w]);
                                 });
    } else if (pass == Pass::kBackwardInput) {
#pragma omp parallel for collapse(2)
        for (int n = 0; n < shape.n; ++n)
            for (int c = 0; c < shape.c; ++c)
                for (int k = 0; k < shape.k; ++k)
                    for_each_row(shape, n, k, c,
                                 [&](std::size_t x, std::size_t w, std::size_t y, std::size_t count) {
                                     for (std::size_t i = 0; i < count; ++i)
                                         add(x + i * stride, a[y + i], b[w]);
                                 });
    } else {
#pragma omp parallel for collapse(2)
        for (int k = 0; k < shape.k; ++k)
            for (int c = 0; c < shape.c; ++c)
                for (int n = 0; n < shape.n; ++n)
                    for_each_row(shape, n, k, c,
                                 [&](std::size_t x, std::size_t w, std::size_t y, std::size_t count) {
                                     for (std::size_t i = 0; i < count; ++i)
                                         add(w, a[x + i * stride], b[y + i]);
                                 });
    }
    return result;
}

namespace {

// |L| |value| |L|^T, of a kRows x kCols matrix L.
template <int kRows, int kCols, class Matrix, class Value>
void absolute_transform(const Matrix& l, const Value& value, double (&result)[kRows][kRows]) {
    double half_way[kRows][kCols] = {};
    for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kCols; ++j)
            for (int t = 0; t < kCols; ++t)
                half_way[i][j] += std::abs(static_cast<double>(l(i, t))) * std::abs(value(t, j));
    for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kRows; ++j) {
            result[i][j] = 0;
            for (int t = 0; t < kCols; ++t)
                result[i][j] += std::abs(static_cast<double>(l(j, t))) * half_way[i][t];
        }
}

// The formula of winograd.cuh with absolute values everywhere.
template <int m>
WinogradBound forward_bound(const Shape& shape, std::span<const float> x, std::span<const float> w) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    struct Element {
        double of[kSide][kSide];
    };
    WinogradBound bound;
    bound.magnitude.resize(outputs(shape));
    // Roundings on the way of a factor to a result, at most. G: two passes of three terms, each a
    // rounded coefficient, a product and a sum; B and A: two passes of m + 2 terms and a product;
    // and C products and sums.
    bound.roundings = static_cast<std::size_t>(2 * 5 + 2 * 2 * (kSide + 1) + shape.c + 1);

    std::vector<Element> u(index(shape.k * shape.c));
    for (int i = 0; i < shape.k * shape.c; ++i)
        absolute_transform<kSide, 3>(
            W::g, [&](int r, int s) { return static_cast<double>(w[index(i * 9 + r * 3 + s)]); },
            u[index(i)].of);
#pragma omp parallel for
    for (int n = 0; n < shape.n; ++n) {
        std::vector<Element> v(index(shape.c));
        for (int tile = 0; tile < (shape.p() + m - 1) / m * ((shape.q() + m - 1) / m); ++tile) {
            const int top = tile / ((shape.q() + m - 1) / m) * m;
            const int left = tile % ((shape.q() + m - 1) / m) * m;
            for (int c = 0; c < shape.c; ++c) {
                const auto input = [&](int i, int j) {
                    const int row = top - shape.padding + i;
                    const int col = left - shape.padding + j;
                    if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) return 0.0;
                    return static_cast<double>(x[index(((n * shape.c + c) * shape.h + row) * shape.w + col)]);
                };
                absolute_transform<kSide, kSide>(W::bt, input, v[index(c)].of);
            }
            for (int k = 0; k < shape.k; ++k) {
                Element sums = {};
                for (int c = 0; c < shape.c; ++c)
                    for (int i = 0; i < kSide; ++i)
                        for (int j = 0; j < kSide; ++j)
                            sums.of[i][j] += u[index(k * shape.c + c)].of[i][j] * v[index(c)].of[i][j];
                double y[m][m];
                absolute_transform<m, kSide>(
                    W::at, [&](int i, int j) { return sums.of[i][j]; }, y);
                for (int i = 0; i < m && top + i < shape.p(); ++i)
                    for (int j = 0; j < m && left + j < shape.q(); ++j)
                        bound.magnitude[index(((n * shape.k + k) * shape.p() + top + i) * shape.q() + left +
                                              j)] = y[i][j];
            }
        }
    }
    return bound;
}

// And that of winograd_gradient.cuh.
template <int m>
WinogradBound filter_gradient_bound(const Shape& shape, std::span<const float> x, std::span<const float> dy) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int across = (shape.q() + m - 1) / m;
    const int of_image = across * ((shape.p() + m - 1) / m);
    WinogradBound bound;
    bound.magnitude.resize(weights(shape));
    // As above, but A has m terms a pass, G m + 2, and the sums run over the tiles, in parts.
    bound.roundings =
        static_cast<std::size_t>(2 * (kSide + 1) + 2 * (m + 1) + 2 * (kSide + 2) + shape.n * of_image + 2);
    // at(l, i) is A^T.
    const auto a = [](int i, int l) { return W::at(l, i); };
    const auto gt = [](int r, int i) { return W::g(i, r); };
#pragma omp parallel for collapse(2)
    for (int k = 0; k < shape.k; ++k)
        for (int c = 0; c < shape.c; ++c) {
            double sums[kSide][kSide] = {};
            for (int tile = 0; tile < shape.n * of_image; ++tile) {
                const int n = tile / of_image;
                const int top = tile % of_image / across * m;
                const int left = tile % across * m;
                const auto element = [](std::span<const float> of, int plane, int rows, int cols, int row,
                                        int col) {
                    if (row < 0 || row >= rows || col < 0 || col >= cols) return 0.0;
                    return static_cast<double>(of[index((plane * rows + row) * cols + col)]);
                };
                double v[kSide][kSide];
                double dm[kSide][kSide];
                absolute_transform<kSide, kSide>(
                    W::bt,
                    [&](int i, int j) {
                        return element(x, n * shape.c + c, shape.h, shape.w, top - shape.padding + i,
                                       left - shape.padding + j);
                    },
                    v);
                absolute_transform<kSide, m>(
                    a,
                    [&](int i, int j) {
                        return element(dy, n * shape.k + k, shape.p(), shape.q(), top + i, left + j);
                    },
                    dm);
                for (int i = 0; i < kSide; ++i)
                    for (int j = 0; j < kSide; ++j)
                        sums[i][j] += v[i][j] * dm[i][j];
            }
            double dw[3][3];
            absolute_transform<3, kSide>(
                gt, [&](int i, int j) { return sums[i][j]; }, dw);
            for (int i = 0; i < 9; ++i)
                bound.magnitude[index((k * shape.c + c) * 9 + i)] = dw[i / 3][i % 3];
        }
    return bound;
}

}  // namespace

WinogradBound winograd_bound(int m, Pass pass, const Shape& shape, std::span<const float> a,
                             std::span<const float> b) {
    check_operands("winograd_bound", pass, shape, a, b);
    require(m == 2 || m == 4, "winograd_bound: m is ", m, "; expected 2 or 4");
    require(shape.r == 3 && shape.s == 3 && shape.stride == 1, "winograd_bound: ", name(pass), " of ",
            to_text(shape), "; expected 3 x 3 filters with stride 1");
    if (pass == Pass::kBackwardWeights)
        return m == 2 ? filter_gradient_bound<2>(shape, a, b) : filter_gradient_bound<4>(shape, a, b);
    if (pass == Pass::kForward) return m == 2 ? forward_bound<2>(shape, a, b) : forward_bound<4>(shape, a, b);
    // The gradient is the convolution of dy with turned filters.
    const Shape other{.n = shape.n,
                      .c = shape.k,
                      .h = shape.p(),
                      .w = shape.q(),
                      .k = shape.c,
                      .r = 3,
                      .s = 3,
                      .padding = 2 - shape.padding,
                      .stride = 1};
    std::vector<float> turned(b.size());
    for (int k = 0; k < shape.k; ++k)
        for (int c = 0; c < shape.c; ++c)
            for (int i = 0; i < 9; ++i)
                turned[index((c * shape.k + k) * 9 + 8 - i)] = b[index((k * shape.c + c) * 9 + i)];
    return m == 2 ? forward_bound<2>(other, a, turned) : forward_bound<4>(other, a, turned);
}

}  // namespace day28
