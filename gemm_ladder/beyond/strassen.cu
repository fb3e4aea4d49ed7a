// One level of Strassen's method, in Winograd's variant (for any of the ladder's kernels).
//
// Change:     A, B and C are cut into quarters. Seven products of quarters and 15 additions replace
//             eight products and 4 additions.
// Why:        an eighth of the multiply-adds. The additions are memory-bound, and fused into three
//             passes: one makes four sums of A's quarters, one those of B's, one makes C from the
//             seven products. They move 8, 8 and 11 quarters, instead of 3 for each addition.
// Prediction: 4096: 27 quarters of 16.8 MB take about 0.11 ms; the eighth product takes 0.33 ms. So
//             about 8 % faster than the dispatcher at 4096, up to 14 % above, nothing below 2048.
// Measured:   H200, beside the dispatcher: 0.77 times as fast at 2048 (432 and 333 µs), 1.07 times at
//             4096 (2.45 and 2.61 ms), 1.10 times at 8192 (18.8 and 20.7 ms; cuBLAS: 21.4). The
//             largest error, with elements in [-1, 1): 1.3 times the dispatcher's at 4096, 2.0 times
//             at 8192.
// Next:       a second level saves another eighth, and
//             multiplies the bound of the error by 4.5 again.
//
//     S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
//     T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = T2 - B21
//     P1 = A11 B11     P2 = A12 B21    P3 = S4 B22      P4 = A22 T4
//     P5 = S1 T1       P6 = S2 T2      P7 = S3 T3
//     C11 = P1 + P2             C12 = P1 + P6 + P5 + P3
//     C21 = P1 + P6 + P7 - P4   C22 = P1 + P6 + P7 + P5
//
// Scratch memory: 4 quarters of A, 4 of B, 7 of C, and what the dispatcher needs: at 4096, 252 MB.
//
// The error. Let |a| <= a, |b| <= b, h = k / 2, and u = 2^-24. S of s terms and T of t terms have
// elements of at most s a and t b; a product of S and T is off by at most (h + (s - 1) + (t - 1)) u
// h s a t b, to first order in u: h terms, each with the roundings of its two factors. Adding up at
// most four products multiplies each by up to three more factors (1 + u). In C12, C21 and C22 the
// products have s t = 1, 9, 4 and 4: together 18. s and t are at most 4, so
//
//     |error| <= 18 h (h + 9) u a b,      beside k^2 u a b = 4 h^2 u a b for the sums of C = A B.
//
// (N. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 23.2.2, has 18 for
// this variant, too, and 12 for Strassen's own.) It is a bound for the whole matrix: next to large
// elements, small ones lose their digits, which a sum of products does not do to them.
//
// Inf and NaN reach sums that C does not depend on. So elements of C that are not finite are
// computed again by definition.
#include <algorithm>
#include <array>

#include "../launch.hpp"
#include "beyond.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "strassen.hpp"

namespace gemm {
namespace {

using course::DeviceMatrix;

constexpr int kThreads = 256;

template <class T>
DeviceMatrix<T> submatrix(const DeviceMatrix<T>& of, std::size_t row, std::size_t col, std::size_t rows,
                          std::size_t cols) {
    const std::size_t pitch = of.leading_dimension();
    const std::size_t size = rows == 0 || cols == 0 ? 0 : (rows - 1) * pitch + cols;
    T* const first = size == 0 ? of.data() : of.data() + row * pitch + col;
    return {course::DeviceSpan<T>::from_device_pointer(first, size), rows, cols, pitch};
}

// The quarters of a matrix with 2 rows x 2 cols elements.
template <class T>
struct Quarters {
    DeviceMatrix<T> q11, q12, q21, q22;

    Quarters(const DeviceMatrix<T>& of, std::size_t rows, std::size_t cols)
        : q11(submatrix(of, 0, 0, rows, cols)),
          q12(submatrix(of, 0, cols, rows, cols)),
          q21(submatrix(of, rows, 0, rows, cols)),
          q22(submatrix(of, rows, cols, rows, cols)) {}
};

// The four sums of quarters, packed one after the other.
struct Sums {
    float* first;
    std::size_t rows;
    std::size_t cols;

    std::size_t size() const { return rows * cols; }
    DeviceMatrix<const float> operator[](std::size_t i) const {
        return {course::DeviceSpan<const float>::from_device_pointer(first + i * size(), size()), rows, cols};
    }
};

// Row and column of this thread's VEC elements, and whether they exist.
template <int VEC>
struct Spot {
    std::size_t row;
    std::size_t col;
    bool exists;

    __device__ Spot(std::size_t rows, std::size_t cols) {
        const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
        row = i / (cols / VEC);
        col = i % (cols / VEC) * VEC;
        exists = row < rows;
    }
};

// S1 to S4 of A's quarters, or T1 to T4 of B's.
template <int VEC, bool OF_A>
__global__ void add_quarters(const Quarters<const float> q, const Sums sums) {
    using Pack = course::Pack<float, VEC>;
    const Spot<VEC> spot(sums.rows, sums.cols);
    if (!spot.exists) return;
    const Pack p11 = Pack::load(&q.q11(spot.row, spot.col));
    const Pack p12 = Pack::load(&q.q12(spot.row, spot.col));
    const Pack p21 = Pack::load(&q.q21(spot.row, spot.col));
    const Pack p22 = Pack::load(&q.q22(spot.row, spot.col));
    Pack results[4];
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        const float a11 = p11.value[i], a12 = p12.value[i], a21 = p21.value[i], a22 = p22.value[i];
        if constexpr (OF_A) {
            results[0].value[i] = a21 + a22;
            results[1].value[i] = results[0].value[i] - a11;
            results[2].value[i] = a11 - a21;
            results[3].value[i] = a12 - results[1].value[i];
        } else {
            results[0].value[i] = a12 - a11;
            results[1].value[i] = a22 - results[0].value[i];
            results[2].value[i] = a22 - a12;
            results[3].value[i] = results[1].value[i] - a21;
        }
    }
    const std::size_t place = spot.row * sums.cols + spot.col;
#pragma unroll
    for (int s = 0; s < 4; ++s)
        results[s].store(sums.first + s * sums.rows * sums.cols + place);
}

// The product by definition, of one element of C.
__device__ float element_of(const Sgemm& gemm, std::size_t depth, std::size_t row, std::size_t col) {
    float sum = 0;
    for (std::size_t k = 0; k < depth; ++k)
        sum += gemm.a(row, k) * gemm.b(k, col);
    return sum;
}

// C = alpha (sums of P1 to P7) + beta C. `depth`: columns of A that are in the halves.
template <int VEC>
__global__ void combine_products(const Sgemm gemm, const Quarters<float> c, const Sums products,
                                 std::size_t depth) {
    using Pack = course::Pack<float, VEC>;
    const Spot<VEC> spot(products.rows, products.cols);
    if (!spot.exists) return;
    Pack p[8];
#pragma unroll
    for (int i = 1; i <= 7; ++i) {
        p[i] = Pack::load(products.first + (i - 1) * products.rows * products.cols +
                          spot.row * products.cols + spot.col);
    }
    Pack sums[4];
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
        const float u2 = p[1].value[i] + p[6].value[i];
        const float u3 = u2 + p[7].value[i];
        sums[0].value[i] = p[1].value[i] + p[2].value[i];
        sums[1].value[i] = u2 + p[5].value[i] + p[3].value[i];
        sums[2].value[i] = u3 - p[4].value[i];
        sums[3].value[i] = u3 + p[5].value[i];
    }
    const DeviceMatrix<float> quarters[] = {c.q11, c.q12, c.q21, c.q22};
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        float* const to = &quarters[q](spot.row, spot.col);
        Pack before{};
        if (gemm.beta != 0) before = Pack::load(to);
#pragma unroll
        for (int i = 0; i < VEC; ++i) {
            float sum = sums[q].value[i];
            if (0 * sum != 0) {
                sum = element_of(gemm, depth, spot.row + (q / 2) * products.rows,
                                 spot.col + i + (q % 2) * products.cols);
            }
            before.value[i] =
                gemm.beta == 0 ? gemm.alpha * sum : gemm.alpha * sum + gemm.beta * before.value[i];
        }
        before.store(to);
    }
}

// Halves of whole float4, so that quarters of aligned matrices are aligned.
Shape halves_of(const Shape& shape) {
    return {shape.m / 2, shape.n / 8 * 4, shape.k / 8 * 4};
}

bool has_halves(const Shape& half) {
    return half.m != 0 && half.n != 0 && half.k != 0;
}

std::size_t quarters_size(const Shape& half) {
    return 4 * half.m * half.k + 4 * half.k * half.n + 7 * half.m * half.n;
}

// The four products that C needs besides that of the halves: what they leave of K, the last
// columns, the last row; and the seven.
std::array<Shape, 4> products_of(const Shape& shape, const Shape& half) {
    return {half, Shape{2 * half.m, 2 * half.n, shape.k - 2 * half.k},
            Shape{shape.m, shape.n - 2 * half.n, shape.k}, Shape{shape.m - 2 * half.m, 2 * half.n, shape.k}};
}

ScratchSize scratch_of(const Shape& shape) {
    const Shape half = halves_of(shape);
    if (!has_halves(half)) return dispatcher().scratch(shape);
    ScratchSize most = dispatcher().scratch(shape);  // with alpha = 0 there are no halves
    for (const Shape& product : products_of(shape, half)) {
        if (product.m == 0 || product.n == 0 || product.k == 0) continue;
        const ScratchSize size = dispatcher().scratch(product);
        most = {std::max(most.partial, size.partial), std::max(most.tickets, size.tickets)};
    }
    return {quarters_size(half) + most.partial, most.tickets};
}

template <int VEC>
void launch_halves(const Sgemm& gemm, const Shape& half, const Scratch& scratch, cudaStream_t stream) {
    const Quarters<const float> a(gemm.a, half.m, half.k);
    const Quarters<const float> b(gemm.b, half.k, half.n);
    const Quarters<float> c(gemm.c, half.m, half.n);
    const Sums s{gemm.scratch.partial.data(), half.m, half.k};
    const Sums t{s.first + 4 * s.size(), half.k, half.n};
    const Sums p{t.first + 4 * t.size(), half.m, half.n};
    const auto grid = [](const Sums& sums) { return course::blocks_for(sums.size() / VEC, kThreads); };
    course::launch(add_quarters<VEC, true>, {.grid = grid(s), .block = kThreads, .stream = stream}, a, s);
    course::launch(add_quarters<VEC, false>, {.grid = grid(t), .block = kThreads, .stream = stream}, b, t);

    const std::array<std::pair<DeviceMatrix<const float>, DeviceMatrix<const float>>, 7> factors = {
        {{a.q11, b.q11},
         {a.q12, b.q21},
         {s[3], b.q22},
         {a.q22, t[3]},
         {s[0], t[0]},
         {s[1], t[1]},
         {s[2], t[2]}}};
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const auto result = course::DeviceSpan<float>::from_device_pointer(p.first + i * p.size(), p.size());
        dispatcher().launch({.a = factors[i].first,
                             .b = factors[i].second,
                             .c = {result, half.m, half.n},
                             .scratch = scratch},
                            stream);
    }
    course::launch(combine_products<VEC>, {.grid = grid(p), .block = kThreads, .stream = stream}, gemm, c, p,
                   2 * half.k);
}

void launch(const Sgemm& given, cudaStream_t stream) {
    const Shape shape{given.m(), given.n(), given.k()};
    const Shape half = halves_of(shape);
    const Sgemm gemm = checked(given, scratch_of(shape));
    if (!has_halves(half) || gemm.alpha == 0) return dispatcher().launch(given, stream);
    const std::size_t used = quarters_size(half);
    const auto& partial = gemm.scratch.partial;
    const Scratch rest{partial.subspan(used, partial.size() - used), gemm.scratch.tickets};
    if (rows_are_aligned(gemm)) {
        launch_halves<4>(gemm, half, rest, stream);
    } else {
        launch_halves<1>(gemm, half, rest, stream);
    }

    const auto multiply = [&](const DeviceMatrix<const float>& a, const DeviceMatrix<const float>& b,
                              const DeviceMatrix<float>& c, float beta) {
        if (c.rows() == 0 || c.cols() == 0 || a.cols() == 0) return;
        dispatcher().launch({.a = a, .b = b, .c = c, .alpha = gemm.alpha, .beta = beta, .scratch = rest},
                            stream);
    };
    const auto& [a, b, c, alpha, beta, scratch] = gemm;
    const auto [m, n, k] = shape;
    const std::size_t rows = 2 * half.m, cols = 2 * half.n, depth = 2 * half.k;
    multiply(submatrix(a, 0, depth, rows, k - depth), submatrix(b, depth, 0, k - depth, cols),
             submatrix(c, 0, 0, rows, cols), 1);
    multiply(a, submatrix(b, 0, cols, k, n - cols), submatrix(c, 0, cols, m, n - cols), beta);
    multiply(submatrix(a, rows, 0, m - rows, k), submatrix(b, 0, 0, k, cols),
             submatrix(c, rows, 0, m - rows, cols), beta);
}

course::KernelResources resources() {
    return dispatcher().resources();
}

}  // namespace

Kernel strassen() {
    return {launch, resources, scratch_of};
}

constexpr double kUnitRoundoff = 1.0 / (1 << 24);

double strassen_error(std::size_t k, double a_most, double b_most) {
    const auto half = static_cast<double>(k / 8 * 4);
    const auto rest = static_cast<double>(k % 8);
    // One term more, 18 half, for the roundings of adding the rest, of alpha and of beta: each at
    // most that of C, 2 half a b.
    return (18 * half * (half + 9 + 1) + rest * (rest + 1) + rest) * kUnitRoundoff * a_most * b_most;
}

double sum_error(std::size_t k, double a_most, double b_most) {
    const auto terms = static_cast<double>(k);
    return terms * terms * kUnitRoundoff * a_most * b_most;
}

}  // namespace gemm
