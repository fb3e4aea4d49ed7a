// cuBLAS over the host's BLAS: each function against plain loops in double precision, and the
// errors.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

// The functions of all types as overloads without the type's letter: gemm() is cublasSgemm() of
// float.
#define CUBLAS_JOIN_(prefix, name) cublas##prefix##name
#define CUBLAS_JOIN(prefix, name) CUBLAS_JOIN_(prefix, name)
#define CUBLAS_LIST(...) __VA_ARGS__
#define CUBLAS_FUNCTION(prefix, name, parameters, arguments)             \
    [[maybe_unused]] cublasStatus_t blas_##name parameters {             \
        return CUBLAS_JOIN(prefix, name)(handle, CUBLAS_LIST arguments); \
    }
#include "cuda_on_cpu/cublas_each_type.inc"
#undef CUBLAS_FUNCTION

template <class T>
struct Host {
    using type = T;
    using real = T;
};
template <>
struct Host<cuComplex> {
    using type = std::complex<float>;
    using real = float;
};
template <>
struct Host<cuDoubleComplex> {
    using type = std::complex<double>;
    using real = double;
};

// For a type T: its host type Element, which has arithmetic, and its real type RealElement.
template <class T>
class Cublas : public testing::Test {
  public:
    using Element = typename Host<T>::type;
    using RealElement = typename Host<T>::real;
    using Elements = std::vector<Element>;
    static constexpr bool kComplex = !std::is_same_v<Element, RealElement>;

    // Device memory with these values.
    class Memory {
      public:
        explicit Memory(const Elements& values) : size_(values.size()) {
            cudaMalloc(reinterpret_cast<void**>(&pointer_),
                       std::max<std::size_t>(1, size_) * sizeof(Element));
            cudaMemcpy(pointer_, values.data(), size_ * sizeof(Element), cudaMemcpyHostToDevice);
        }
        ~Memory() { cudaFree(pointer_); }
        Memory(const Memory&) = delete;
        operator T*() const { return reinterpret_cast<T*>(pointer_); }
        Elements values() const {
            Elements all(size_);
            EXPECT_EQ(cudaMemcpy(all.data(), pointer_, size_ * sizeof(Element), cudaMemcpyDeviceToHost),
                      cudaSuccess);
            return all;
        }

      private:
        std::size_t size_;
        Element* pointer_ = nullptr;
    };

    Cublas() { EXPECT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS); }
    ~Cublas() override { cublasDestroy(handle_); }

    Elements random(std::size_t count) {
        Elements all(count);
        std::uniform_real_distribution<RealElement> range(-1, 1);
        for (Element& value : all) {
            if constexpr (kComplex) {
                value = Element(range(engine_), range(engine_));
            } else {
                value = range(engine_);
            }
        }
        return all;
    }
    Elements nan(std::size_t count) {
        return Elements(count, Element(std::numeric_limits<RealElement>::quiet_NaN()));
    }

    static const T* scalar(const Element& value) { return reinterpret_cast<const T*>(&value); }

    // The matrix op(A), rows x columns, densely packed.
    static Elements operation(cublasOperation_t trans, const Elements& A, int leading, int rows,
                              int columns) {
        Elements all;
        for (int j = 0; j < columns; ++j) {
            for (int i = 0; i < rows; ++i) {
                Element value = trans == CUBLAS_OP_N ? A[i + j * leading] : A[j + i * leading];
                if constexpr (kComplex) {
                    if (trans == CUBLAS_OP_C) value = std::conj(value);
                }
                all.push_back(value);
            }
        }
        return all;
    }
    static Elements times(const Elements& A, const Elements& B, int m, int n, int k) {
        Elements all(m * n);
        for (int j = 0; j < n; ++j) {
            for (int i = 0; i < m; ++i) {
                for (int l = 0; l < k; ++l)
                    all[i + j * m] += A[i + l * m] * B[l + j * k];
            }
        }
        return all;
    }
    static void expect_near(const Elements& got, const Elements& expected, const char* what) {
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (std::isnan(std::abs(expected[i]))) continue;
            EXPECT_LE(std::abs(got[i] - expected[i]), 100 * std::numeric_limits<RealElement>::epsilon())
                << what << ", element " << i;
            EXPECT_FALSE(std::isnan(std::abs(got[i]))) << what << ", element " << i;
        }
    }
    // Completes the triangle that `uplo` names to a symmetric matrix, or to a Hermitian one
    // (`conjugated`).
    static Elements completed(Elements A, int n, cublasFillMode_t uplo, bool conjugated) {
        for (int j = 0; j < n; ++j) {
            for (int i = 0; i < j; ++i) {
                Element& upper = A[i + j * n];
                Element& lower = A[j + i * n];
                Element& from = uplo == CUBLAS_FILL_MODE_UPPER ? upper : lower;
                Element& to = uplo == CUBLAS_FILL_MODE_UPPER ? lower : upper;
                to = from;
                if constexpr (kComplex) {
                    if (conjugated) to = std::conj(from);
                }
            }
            if (conjugated) A[j + j * n] = std::real(A[j + j * n]);
        }
        return A;
    }
    static Elements triangle(Elements A, int n, cublasFillMode_t uplo, cublasDiagType_t diag) {
        for (int j = 0; j < n; ++j) {
            for (int i = 0; i < n; ++i) {
                if (uplo == CUBLAS_FILL_MODE_UPPER ? i > j : i < j) A[i + j * n] = 0;
            }
            if (diag == CUBLAS_DIAG_UNIT) A[j + j * n] = 1;
        }
        return A;
    }

    cublasHandle_t handle_ = nullptr;
    std::mt19937 engine_{7};
    const Element alpha_ = Element(RealElement(1.25)), beta_ = Element(RealElement(-0.5)), zero_ = Element(0);
};

using Types = testing::Types<float, double, cuComplex, cuDoubleComplex>;
TYPED_TEST_SUITE(Cublas, Types);

constexpr cublasOperation_t kOperations[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
constexpr cublasFillMode_t kTriangles[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};

#define USING_TYPES                                             \
    using Fixture = Cublas<TypeParam>;                          \
    using H [[maybe_unused]] = typename Fixture::Element;       \
    using R [[maybe_unused]] = typename Fixture::RealElement;   \
    using Values [[maybe_unused]] = typename Fixture::Elements; \
    using Device [[maybe_unused]] = typename Fixture::Memory;   \
    const auto handle = this->handle_;

TYPED_TEST(Cublas, MultipliesMatricesInAllLayouts) {
    USING_TYPES
    const int m = 5, n = 3, k = 4, ldc = 7;
    for (const auto transa : kOperations) {
        for (const auto transb : kOperations) {
            const int lda = 8, ldb = 9;
            const Values A = this->random(lda * 5), B = this->random(ldb * 4), C = this->random(ldc * n);
            Device a(A), b(B), c(C), of_nan(this->nan(ldc * n));
            ASSERT_EQ(blas_gemm(handle, transa, transb, m, n, k, this->scalar(this->alpha_), a, lda, b, ldb,
                                this->scalar(this->beta_), c, ldc),
                      CUBLAS_STATUS_SUCCESS);
            ASSERT_EQ(blas_gemm(handle, transa, transb, m, n, k, this->scalar(this->alpha_), a, lda, b, ldb,
                                this->scalar(this->zero_), of_nan, ldc),
                      CUBLAS_STATUS_SUCCESS);
            const Values product = Fixture::times(Fixture::operation(transa, A, lda, m, k),
                                                  Fixture::operation(transb, B, ldb, k, n), m, n, k);
            Values expected = C, without_c = this->nan(ldc * n);
            for (int j = 0; j < n; ++j) {
                for (int i = 0; i < m; ++i) {
                    expected[i + j * ldc] = this->alpha_ * product[i + j * m] + this->beta_ * C[i + j * ldc];
                    without_c[i + j * ldc] = this->alpha_ * product[i + j * m];
                }
            }
            Fixture::expect_near(c.values(), expected, "gemm");
            Fixture::expect_near(of_nan.values(), without_c, "gemm with beta 0");
            EXPECT_TRUE(std::isnan(std::abs(of_nan.values()[m]))) << "between the columns nothing is written";
        }
    }
}

TYPED_TEST(Cublas, MultipliesMatricesAndVectors) {
    USING_TYPES
    const int m = 4, n = 3, lda = 5;
    for (const auto trans : kOperations) {
        const int rows = trans == CUBLAS_OP_N ? m : n, columns = trans == CUBLAS_OP_N ? n : m;
        const Values A = this->random(lda * n), X = this->random(2 * columns);
        Device a(A), x(X), y(this->nan(rows));
        ASSERT_EQ(blas_gemv(handle, trans, m, n, this->scalar(this->alpha_), a, lda, x, -2,
                            this->scalar(this->zero_), y, 1),
                  CUBLAS_STATUS_SUCCESS);
        Values reversed, expected;
        for (int i = columns - 1; i >= 0; --i)
            reversed.push_back(X[2 * i]);
        for (const H value :
             Fixture::times(Fixture::operation(trans, A, lda, rows, columns), reversed, rows, 1, columns))
            expected.push_back(this->alpha_ * value);
        Fixture::expect_near(y.values(), expected, "gemv");
    }
}

TYPED_TEST(Cublas, ComputesWithVectors) {
    USING_TYPES
    const Values X = {1, -4, 3}, Y = {2, 1, 5};
    Device x(X), y(Y);
    int position = 0;
    R norm = 0;
    EXPECT_EQ(blas_amax(handle, 3, x, 1, &position), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(position, 2);
    EXPECT_EQ(blas_amin(handle, 3, x, 1, &position), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(position, 1);
    EXPECT_EQ(blas_amax(handle, 0, x, 1, &position), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(position, 0);
    EXPECT_EQ(blas_asum(handle, 3, x, 1, &norm), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(norm, 8);
    EXPECT_EQ(blas_nrm2(handle, 3, x, 1, &norm), CUBLAS_STATUS_SUCCESS);
    EXPECT_NEAR(norm, std::sqrt(26.0), 1e-6);
    TypeParam dot{};
    if constexpr (Fixture::kComplex) {
        EXPECT_EQ(blas_dotc(handle, 3, x, 1, y, 1, &dot), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(dot.x, 13);
        const R two = 2;
        EXPECT_EQ(blas_scal(handle, 3, &two, x, 1), CUBLAS_STATUS_SUCCESS);
    } else {
        EXPECT_EQ(blas_dot(handle, 3, x, 1, y, 1, &dot), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(dot, 13);
        const TypeParam two = 2;
        EXPECT_EQ(blas_scal(handle, 3, &two, x, 1), CUBLAS_STATUS_SUCCESS);
    }
    EXPECT_EQ(x.values(), (Values{2, -8, 6}));
    const H three = 3;
    EXPECT_EQ(blas_axpy(handle, 3, this->scalar(three), x, 1, y, 1), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(y.values(), (Values{8, -23, 23}));
    EXPECT_EQ(blas_swap(handle, 2, x, 1, y, 1), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(x.values(), (Values{8, -23, 6}));
    EXPECT_EQ(blas_copy(handle, 3, x, 1, y, -1), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(y.values(), (Values{6, -23, 8}));

    H a = 3, b = 4, s = 0;
    R c = 0;
    EXPECT_EQ(blas_rotg(handle, reinterpret_cast<TypeParam*>(&a), reinterpret_cast<TypeParam*>(&b), &c,
                        reinterpret_cast<TypeParam*>(&s)),
              CUBLAS_STATUS_SUCCESS);
    Device first(Values{3}), second(Values{4});
    EXPECT_EQ(blas_rot(handle, 1, first, 1, second, 1, &c, reinterpret_cast<TypeParam*>(&s)),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_NEAR(std::abs(first.values()[0] - H(5)), 0, 1e-6);
    EXPECT_NEAR(std::abs(second.values()[0]), 0, 1e-6);
}

TYPED_TEST(Cublas, UsesOneTriangleOfSymmetricMatrices) {
    USING_TYPES
    const int n = 4, k = 3;
    for (const auto uplo : kTriangles) {
        const Values A = this->random(n * n), X = this->random(n), Y = this->random(n);
        Device a(A), x(X), y(this->nan(n)), c(this->nan(n * n)), packed(this->nan(n * (n + 1) / 2));
        const auto alpha = this->scalar(this->alpha_), zero = this->scalar(this->zero_);
        const auto scaled = [&](Values values) {
            for (H& value : values)
                value *= this->alpha_;
            return values;
        };
        EXPECT_EQ(blas_symv(handle, uplo, n, alpha, a, n, x, 1, zero, y, 1), CUBLAS_STATUS_SUCCESS);
        const Values symmetric = Fixture::completed(A, n, uplo, false);
        Fixture::expect_near(y.values(), scaled(Fixture::times(symmetric, X, n, 1, n)), "symv");
        EXPECT_EQ(blas_symm(handle, CUBLAS_SIDE_LEFT, uplo, n, 1, alpha, a, n, x, n, zero, y, n),
                  CUBLAS_STATUS_SUCCESS);
        Fixture::expect_near(y.values(), scaled(Fixture::times(symmetric, X, n, 1, n)), "symm");
        EXPECT_EQ(blas_symm(handle, CUBLAS_SIDE_RIGHT, uplo, 1, n, alpha, a, n, x, 1, zero, y, 1),
                  CUBLAS_STATUS_SUCCESS);
        Fixture::expect_near(y.values(), scaled(Fixture::times(X, symmetric, 1, n, n)), "symm, right");

        const Values B = this->random(n * k), D = this->random(n * k);
        Device b(B), d(D);
        EXPECT_EQ(blas_syrk(handle, uplo, CUBLAS_OP_N, n, k, alpha, b, n, zero, c, n), CUBLAS_STATUS_SUCCESS);
        const Values square = Fixture::times(B, Fixture::operation(CUBLAS_OP_T, B, n, k, n), n, n, k);
        Fixture::expect_near(Fixture::completed(c.values(), n, uplo, false), scaled(square), "syrk");
        EXPECT_TRUE(std::isnan(std::abs(c.values()[uplo == CUBLAS_FILL_MODE_LOWER ? n : 1])))
            << "the other triangle";
        EXPECT_EQ(blas_syrkx(handle, uplo, CUBLAS_OP_N, n, k, alpha, b, n, b, n, zero, c, n),
                  CUBLAS_STATUS_SUCCESS);
        Fixture::expect_near(Fixture::completed(c.values(), n, uplo, false), scaled(square), "syrkx");
        EXPECT_EQ(blas_syr2k(handle, uplo, CUBLAS_OP_N, n, k, alpha, b, n, d, n, zero, c, n),
                  CUBLAS_STATUS_SUCCESS);
        Values both = Fixture::times(B, Fixture::operation(CUBLAS_OP_T, D, n, k, n), n, n, k);
        const Values other = Fixture::times(D, Fixture::operation(CUBLAS_OP_T, B, n, k, n), n, n, k);
        for (int i = 0; i < n * n; ++i)
            both[i] += other[i];
        Fixture::expect_near(Fixture::completed(c.values(), n, uplo, false), scaled(both), "syr2k");

        Device zeros(Values(n * n)), zeros2(Values(n * n));
        EXPECT_EQ(blas_syr(handle, uplo, n, alpha, x, 1, zeros, n), CUBLAS_STATUS_SUCCESS);
        Fixture::expect_near(Fixture::completed(zeros.values(), n, uplo, false),
                             scaled(Fixture::times(X, X, n, n, 1)), "syr");
        EXPECT_EQ(blas_trttp(handle, uplo, n, a, n, packed), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(blas_tpttr(handle, uplo, n, packed, zeros2, n), CUBLAS_STATUS_SUCCESS);
        Fixture::expect_near(zeros2.values(), Fixture::triangle(A, n, uplo, CUBLAS_DIAG_NON_UNIT), "packed");
        if constexpr (Fixture::kComplex) {
            const Values hermitian = Fixture::completed(A, n, uplo, true);
            EXPECT_EQ(blas_hemv(handle, uplo, n, alpha, a, n, x, 1, zero, y, 1), CUBLAS_STATUS_SUCCESS);
            Fixture::expect_near(y.values(), scaled(Fixture::times(hermitian, X, n, 1, n)), "hemv");
            EXPECT_EQ(blas_hpmv(handle, uplo, n, alpha, packed, x, 1, zero, y, 1), CUBLAS_STATUS_SUCCESS);
            Fixture::expect_near(y.values(), scaled(Fixture::times(hermitian, X, n, 1, n)), "hpmv");
            const R real_alpha = std::real(this->alpha_), real_zero = 0;
            EXPECT_EQ(blas_herk(handle, uplo, CUBLAS_OP_N, n, k, &real_alpha, b, n, &real_zero, c, n),
                      CUBLAS_STATUS_SUCCESS);
            const Values gram =
                scaled(Fixture::times(B, Fixture::operation(CUBLAS_OP_C, B, n, k, n), n, n, k));
            Fixture::expect_near(Fixture::completed(c.values(), n, uplo, true), gram, "herk");
            EXPECT_EQ(blas_herkx(handle, uplo, CUBLAS_OP_N, n, k, alpha, b, n, b, n, &real_zero, c, n),
                      CUBLAS_STATUS_SUCCESS);
            Fixture::expect_near(Fixture::completed(c.values(), n, uplo, true), gram, "herkx");
        } else {
            EXPECT_EQ(blas_spmv(handle, uplo, n, alpha, packed, x, 1, zero, y, 1), CUBLAS_STATUS_SUCCESS);
            Fixture::expect_near(y.values(), scaled(Fixture::times(symmetric, X, n, 1, n)), "spmv");
        }
    }
}

TYPED_TEST(Cublas, MultipliesAndSolvesTriangles) {
    USING_TYPES
    const int m = 4, n = 3;
    for (const auto uplo : kTriangles) {
        for (const auto trans : kOperations) {
            for (const auto diag : {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT}) {
                Values A = this->random(m * m);
                for (int i = 0; i < m; ++i)
                    A[i + i * m] = H(3 + i);
                const Values B = this->random(m * n);
                Device a(A), b(B), c(this->nan(m * n)), x(Values(B.begin(), B.begin() + m));
                EXPECT_EQ(blas_trmm(handle, CUBLAS_SIDE_LEFT, uplo, trans, diag, m, n,
                                    this->scalar(this->alpha_), a, m, b, m, c, m),
                          CUBLAS_STATUS_SUCCESS);
                const Values op = Fixture::operation(trans, Fixture::triangle(A, m, uplo, diag), m, m, m);
                Values expected = Fixture::times(op, B, m, n, m);
                const Values column(expected.begin(), expected.begin() + m);
                for (H& value : expected)
                    value *= this->alpha_;
                Fixture::expect_near(c.values(), expected, "trmm");
                EXPECT_EQ(b.values(), B) << "not in place";
                const H inverse = H(1) / this->alpha_;
                EXPECT_EQ(blas_trsm(handle, CUBLAS_SIDE_LEFT, uplo, trans, diag, m, n, this->scalar(inverse),
                                    a, m, c, m),
                          CUBLAS_STATUS_SUCCESS);
                Fixture::expect_near(c.values(), B, "trsm");
                EXPECT_EQ(blas_trmv(handle, uplo, trans, diag, m, a, m, x, 1), CUBLAS_STATUS_SUCCESS);
                Fixture::expect_near(x.values(), column, "trmv");
                EXPECT_EQ(blas_trsv(handle, uplo, trans, diag, m, a, m, x, 1), CUBLAS_STATUS_SUCCESS);
                Fixture::expect_near(x.values(), Values(B.begin(), B.begin() + m), "trsv");
            }
        }
    }
}

TYPED_TEST(Cublas, AddsAndScalesMatrices) {
    USING_TYPES
    const int m = 2, n = 3;
    const Values A = this->random(m * n), B = this->random(m * n), X = this->random(m);
    Device a(A), b(B), x(X), c(this->nan(m * n));
    EXPECT_EQ(blas_geam(handle, CUBLAS_OP_N, CUBLAS_OP_C, m, n, this->scalar(this->alpha_), a, m,
                        this->scalar(this->beta_), b, n, c, m),
              CUBLAS_STATUS_SUCCESS);
    const Values transposed = Fixture::operation(CUBLAS_OP_C, B, n, m, n);
    Values sum = A, scaled = A;
    for (int i = 0; i < m * n; ++i) {
        sum[i] = this->alpha_ * A[i] + this->beta_ * transposed[i];
        scaled[i] = X[i % m] * A[i];
    }
    Fixture::expect_near(c.values(), sum, "geam");
    EXPECT_EQ(blas_geam(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, this->scalar(H(1)), a, n,
                        this->scalar(this->zero_), static_cast<TypeParam*>(nullptr), m, c, m),
              CUBLAS_STATUS_SUCCESS);
    Fixture::expect_near(c.values(), Fixture::operation(CUBLAS_OP_T, A, n, m, n), "geam transposes");
    EXPECT_EQ(blas_dgmm(handle, CUBLAS_SIDE_LEFT, m, n, a, m, x, 1, c, m), CUBLAS_STATUS_SUCCESS);
    Fixture::expect_near(c.values(), scaled, "dgmm");
}

TYPED_TEST(Cublas, ComputesBatches) {
    USING_TYPES
    const int n = 3, batch = 2, size = n * n;
    Values A = this->random(batch * size);
    const Values B = this->random(batch * size);
    // Row exchanges are needed.
    for (int i = 0; i < batch; ++i)
        A[i * size] = 0;
    Device a(A), b(B), c(this->nan(batch * size));
    const H one_element = H(1);
    const auto one = this->scalar(one_element);
    const auto pointers = [&](TypeParam* first) {
        TypeParam** all = nullptr;
        cudaMalloc(reinterpret_cast<void**>(&all), batch * sizeof(TypeParam*));
        TypeParam* host[batch] = {first, first + size};
        cudaMemcpy(all, host, sizeof host, cudaMemcpyHostToDevice);
        return all;
    };
    TypeParam **as = pointers(a), **bs = pointers(b), **cs = pointers(c);
    Values expected;
    for (int i = 0; i < batch; ++i) {
        const Values product =
            Fixture::times(Values(A.begin() + i * size, A.begin() + (i + 1) * size),
                           Values(B.begin() + i * size, B.begin() + (i + 1) * size), n, n, n);
        expected.insert(expected.end(), product.begin(), product.end());
    }
    EXPECT_EQ(blas_gemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, one, as, n, bs, n,
                               this->scalar(this->zero_), cs, n, batch),
              CUBLAS_STATUS_SUCCESS);
    Fixture::expect_near(c.values(), expected, "gemmBatched");
    EXPECT_EQ(blas_gemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, one, a, n, size, b, n, size,
                                      this->scalar(this->zero_), c, n, size, batch),
              CUBLAS_STATUS_SUCCESS);
    Fixture::expect_near(c.values(), expected, "gemmStridedBatched");

    int *pivots = nullptr, *info = nullptr, host_info = -7;
    cudaMalloc(reinterpret_cast<void**>(&pivots), batch * n * sizeof(int));
    cudaMalloc(reinterpret_cast<void**>(&info), batch * sizeof(int));
    EXPECT_EQ(blas_getrfBatched(handle, n, as, n, pivots, info, batch), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(blas_getrsBatched(handle, CUBLAS_OP_N, n, n, as, n, pivots, cs, n, &host_info, batch),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(host_info, 0);
    const Values solved = c.values();
    for (std::size_t i = 0; i < solved.size(); ++i)
        EXPECT_LE(std::abs(solved[i] - B[i]), 1e-3) << "A X = A B gives X = B, element " << i;
    EXPECT_EQ(blas_getriBatched(handle, n, as, n, pivots, cs, n, info, batch), CUBLAS_STATUS_SUCCESS);
    const Values inverse = c.values();
    for (int i = 0; i < batch; ++i) {
        const Values identity =
            Fixture::times(Values(A.begin() + i * size, A.begin() + (i + 1) * size),
                           Values(inverse.begin() + i * size, inverse.begin() + (i + 1) * size), n, n, n);
        for (int j = 0; j < size; ++j)
            EXPECT_LE(std::abs(identity[j] - H(j % (n + 1) == 0 ? 1 : 0)), 1e-3) << "A times its inverse";
    }
    for (void* memory : std::initializer_list<void*>{as, bs, cs, pivots, info})
        cudaFree(memory);
}

class CublasHandle : public Cublas<float> {
  public:
    using Values = Elements;
    using Device = Memory;
};

TEST_F(CublasHandle, ScalarsMayLieInDeviceMemoryAndAreReadInTheOrderOfTheStream) {
    Device x(Values{1, 2}), alpha(Values{3}), result(Values{0});
    ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    cublasSetStream(handle_, stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cublasSscal(handle_, 2, alpha, x, 1), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSdot(handle_, 2, x, 1, x, 1, result), CUBLAS_STATUS_SUCCESS);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    EXPECT_EQ(x.values(), (Values{1, 2})) << "a capture notes the work";
    cudaGraphExec_t executable = nullptr;
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, stream);
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(x.values(), (Values{9, 18}));
    EXPECT_EQ(result.values(), (Values{405}));
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

TEST_F(CublasHandle, ArgumentsAreCheckedBeforeAnythingIsTouched) {
    Device a(Values(6, 1)), c(Values(4, 5));
    const float one = 1, zero = 0;
    const auto gemm = [&](cublasHandle_t with, int transa, int m, int lda, const float* alpha) {
        return cublasSgemm(with, static_cast<cublasOperation_t>(transa), CUBLAS_OP_N, m, 2, 2, alpha, a, lda,
                           a, 2, &zero, c, 2);
    };
    EXPECT_EQ(gemm(nullptr, 0, 2, 2, &one), CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(gemm(handle_, 7, 2, 2, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(handle_, 0, -1, 2, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(handle_, 0, 2, 1, &one), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(handle_, 0, 2, 2, nullptr), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(gemm(handle_, 0, 2, 2, a), CUBLAS_STATUS_INVALID_VALUE)
        << "alpha in device memory, in host mode";
    EXPECT_EQ(c.values(), Values(4, 5));
    EXPECT_EQ(gemm(handle_, 0, 0, 1, &one), CUBLAS_STATUS_SUCCESS) << "a matrix without rows";
    EXPECT_EQ(c.values(), Values(4, 5));
    EXPECT_EQ(cublasSgemv(handle_, CUBLAS_OP_N, 2, 2, &one, a, 2, a, 0, &zero, c, 1),
              CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasSgemm_v2(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &zero, c, 2),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(c.values(), Values(4, 2));
    EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
}

TEST_F(CublasHandle, HostMemoryAndShortAllocationsAreReported) {
    Device a(Values(4, 1)), c(Values(4, 5));
    const std::vector<float> host(4, 1);
    const float one = 1, zero = 0;
    for (const float* wrong :
         {host.data(), static_cast<const float*>(a) + 1, static_cast<const float*>(nullptr)}) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, wrong, 2, a, 2, &zero, c, 2),
                  CUBLAS_STATUS_SUCCESS);
        const std::string message = testing::internal::GetCapturedStderr();
        EXPECT_NE(message.find("cublasSgemm: A is"), std::string::npos) << message;
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        EXPECT_EQ(cublasSscal(handle_, 1, &one, c, 1), CUBLAS_STATUS_EXECUTION_FAILED)
            << "the context is lost";
        cudaDeviceReset();
    }
    EXPECT_EQ(c.values(), Values(4, 5));
}

TEST_F(CublasHandle, CopiesMatricesAndVectors) {
    const Values host = {1, 2, -1, 3, 4, -1};
    Device matrix(Values(4, 0)), vector(Values(2, 0));
    EXPECT_EQ(cublasSetMatrix(2, 2, sizeof(float), host.data(), 3, matrix, 2), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(matrix.values(), (Values{1, 2, 3, 4}));
    EXPECT_EQ(cublasSetVector(2, sizeof(float), host.data(), 3, vector, 1), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(vector.values(), (Values{1, 3}));
    Values back(3, 0);
    EXPECT_EQ(cublasGetVector(2, sizeof(float), vector, 1, back.data(), 2), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(back, (Values{1, 0, 3}));
    EXPECT_EQ(cublasSetMatrix(2, 2, 0, host.data(), 3, matrix, 2), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasSetMatrix(2, 2, sizeof(float), host.data(), 1, matrix, 2), CUBLAS_STATUS_INVALID_VALUE);
}

// The product of A and B of 1 x k: one number of type C.
template <class AB, class C, class Scale>
C inner_product(cublasHandle_t handle, const std::vector<AB>& a, const std::vector<AB>& b, cudaDataType type,
                cudaDataType c_type, cublasComputeType_t compute, Scale alpha = Scale(1)) {
    AB *a_d, *b_d;
    C* c_d;
    cudaMalloc(reinterpret_cast<void**>(&a_d), a.size() * sizeof(AB));
    cudaMalloc(reinterpret_cast<void**>(&b_d), a.size() * sizeof(AB));
    cudaMalloc(reinterpret_cast<void**>(&c_d), sizeof(C));
    cudaMemcpy(a_d, a.data(), a.size() * sizeof(AB), cudaMemcpyHostToDevice);
    cudaMemcpy(b_d, b.data(), a.size() * sizeof(AB), cudaMemcpyHostToDevice);
    const int k = static_cast<int>(a.size());
    const Scale beta(0);
    EXPECT_EQ(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, k, &alpha, a_d, type, 1, b_d, type, k,
                           &beta, c_d, c_type, 1, compute, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    C c{};
    cudaMemcpy(&c, c_d, sizeof c, cudaMemcpyDeviceToHost);
    cudaFree(a_d);
    cudaFree(b_d);
    cudaFree(c_d);
    return c;
}

TEST_F(CublasHandle, LowPrecisionIsSummedInMoreAndRoundedOnce) {
    // In half precision 2048 + 1 + 1 is 2048 when each sum is rounded.
    const std::vector<__half> halves = {__half(2048.f), __half(1.f), __half(1.f)}, ones(3, __half(1.f));
    EXPECT_EQ(float(inner_product<__half, __half, float>(handle_, halves, ones, CUDA_R_16F, CUDA_R_16F,
                                                         CUBLAS_COMPUTE_32F)),
              2050);
    EXPECT_EQ((inner_product<__half, float, float>(handle_, halves, ones, CUDA_R_16F, CUDA_R_32F,
                                                   CUBLAS_COMPUTE_32F)),
              2050);
    EXPECT_EQ(float(inner_product<__half, __half, __half>(handle_, halves, ones, CUDA_R_16F, CUDA_R_16F,
                                                          CUBLAS_COMPUTE_16F)),
              2050);
    const std::vector<__nv_bfloat16> brains = {__nv_bfloat16(256.f), __nv_bfloat16(1.f), __nv_bfloat16(1.f)};
    const std::vector<__nv_bfloat16> brain_ones(3, __nv_bfloat16(1.f));
    EXPECT_EQ(float(inner_product<__nv_bfloat16, __nv_bfloat16, float>(
                  handle_, brains, brain_ones, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F)),
              258);
    const std::vector<signed char> bytes = {127, -128, 3}, more = {127, -128, 5};
    EXPECT_EQ((inner_product<signed char, int, int>(handle_, bytes, more, CUDA_R_8I, CUDA_R_32I,
                                                    CUBLAS_COMPUTE_32I, 2)),
              2 * (127 * 127 + 128 * 128 + 15));
    EXPECT_EQ((inner_product<signed char, float, float>(handle_, bytes, more, CUDA_R_8I, CUDA_R_32F,
                                                        CUBLAS_COMPUTE_32F)),
              127 * 127 + 128 * 128 + 15);
    const float one = 1;
    Device c(Values(1, 0));
    EXPECT_EQ(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, c, CUDA_R_16F, 1, c, CUDA_R_32F,
                           1, &one, c, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_NOT_SUPPORTED);
}

// D = gelu or relu(alpha A B + beta C + bias), 2 x 2: A in row-major order, B transposed, in
// bfloat16 and float.
template <class T>
std::vector<float> lt_matmul(cudaDataType type, cublasLtEpilogue_t epilogue,
                             std::vector<float>* auxiliary = nullptr) {
    const auto on_device = [](std::vector<float> values) {
        std::vector<T> narrow;
        for (const float value : values)
            narrow.push_back(T(value));
        T* pointer = nullptr;
        cudaMalloc(reinterpret_cast<void**>(&pointer), values.size() * sizeof(T));
        cudaMemcpy(pointer, narrow.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
        return pointer;
    };
    const auto on_host = [](const T* pointer, std::size_t count) {
        std::vector<T> narrow(count);
        EXPECT_EQ(cudaMemcpy(narrow.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        std::vector<float> values;
        for (const T value : narrow)
            values.push_back(static_cast<float>(value));
        return values;
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    T *A = on_device({1, 2, 3, 4}), *B = on_device({1, -1, 2, 0}), *C = on_device({1, 1, 1, 1}),
      *bias = on_device({0, 1}), *D = on_device({nan, nan, nan, nan}), *aux = on_device({nan, nan, nan, nan});
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
        EXPECT_EQ(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
                  CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<const void*>(aux));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{2});
    for (cublasLtMatrixLayout_t* layout : {&a, &b, &c})
        EXPECT_EQ(cublasLtMatrixLayoutCreate(layout, type, 2, 2, 2), CUBLAS_STATUS_SUCCESS);
    const cublasLtOrder_t row = CUBLASLT_ORDER_ROW;
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(a, CUBLASLT_MATRIX_LAYOUT_ORDER, &row, sizeof row),
              CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t result{};
    int results = 0;
    EXPECT_EQ(
        cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, c, c, preference, 1, &result, &results),
        CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(results, 1);
    const float alpha = 1, beta = 0.5;
    EXPECT_EQ(cublasLtMatmul(handle, description, &alpha, A, a, B, b, &beta, C, c, D, c, &result.algo,
                             nullptr, 0, nullptr),
              CUBLAS_STATUS_SUCCESS);
    const std::vector<float> d = on_host(D, 4);
    if (auxiliary != nullptr) *auxiliary = on_host(aux, 4);
    for (T* memory : {A, B, C, bias, D, aux})
        cudaFree(memory);
    for (const cublasLtMatrixLayout_t layout : {a, b, c})
        cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatmulDescDestroy(description);
    cublasLtDestroy(handle);
    return d;
}

TEST(CublasLt, MultipliesWithEpilogues) {
    // A = [1 2; 3 4], B^T = [1 -1; 2 0]: A B^T + 0.5 = [5.5 -0.5; 11.5 -2.5], by columns; the bias
    // adds 1 to the second row.
    const std::vector<float> plain = {5.5f, 11.5f, -0.5f, -2.5f}, biased = {5.5f, 12.5f, -0.5f, -1.5f};
    EXPECT_EQ(lt_matmul<float>(CUDA_R_32F, CUBLASLT_EPILOGUE_DEFAULT), plain);
    EXPECT_EQ(lt_matmul<__nv_bfloat16>(CUDA_R_16BF, CUBLASLT_EPILOGUE_BIAS), biased);
    EXPECT_EQ(lt_matmul<float>(CUDA_R_32F, CUBLASLT_EPILOGUE_RELU_BIAS),
              (std::vector<float>{5.5f, 12.5f, 0, 0}));
    std::vector<float> before;
    const std::vector<float> smooth = lt_matmul<float>(CUDA_R_32F, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, &before);
    EXPECT_EQ(before, biased);
    EXPECT_NEAR(smooth[1], 12.5, 1e-5);
    EXPECT_NEAR(smooth[2], -0.154286, 1e-5);
    EXPECT_NEAR(smooth[3], -0.100428, 1e-5);
}

// --- Types as arguments --------------------------------------------------------------------------

template <class Stored>
struct TypeOf;
#define CUBLAS_TYPE(Type, value)                 \
    template <>                                  \
    struct TypeOf<Type> {                        \
        static constexpr cudaDataType k = value; \
    };
CUBLAS_TYPE(__half, CUDA_R_16F)
CUBLAS_TYPE(__nv_bfloat16, CUDA_R_16BF)
CUBLAS_TYPE(float, CUDA_R_32F)
CUBLAS_TYPE(double, CUDA_R_64F)
CUBLAS_TYPE(std::complex<float>, CUDA_C_32F)
CUBLAS_TYPE(std::complex<double>, CUDA_C_64F)
#undef CUBLAS_TYPE

template <class T>
std::complex<double> wide(T value) {
    if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>)
        return {static_cast<double>(static_cast<float>(value)), 0};
    else
        return std::complex<double>(value);
}
template <class T>
T narrow(std::complex<double> value) {
    if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>)
        return T(static_cast<float>(value.real()));
    else if constexpr (std::is_arithmetic_v<T>)
        return static_cast<T>(value.real());
    else
        return T(value);
}

template <class T>
class Ex : public testing::Test {
  protected:
    static constexpr int kN = 23;
    // The elements of a vector in memory with an increment; those between are NaN or 77.
    static std::size_t place(int i, int increment) {
        return static_cast<std::size_t>(increment < 0 ? (i + 1 - kN) * increment : i * increment);
    }
    static std::vector<T> strided(int increment, int seed) {
        std::vector<T> all(static_cast<std::size_t>((kN - 1) * std::abs(increment) + 1), narrow<T>(77));
        for (int i = 0; i < kN; ++i)
            all[place(i, increment)] =
                narrow<T>(std::complex<double>(((i * 7 + seed) % 13 - 6) / 4.0, (i % 5 - 2) / 4.0));
        return all;
    }
    class Memory {
      public:
        explicit Memory(const std::vector<T>& values) : size(values.size()) {
            cudaMalloc(reinterpret_cast<void**>(&pointer), size * sizeof(T));
            cudaMemcpy(pointer, values.data(), size * sizeof(T), cudaMemcpyHostToDevice);
        }
        ~Memory() { cudaFree(pointer); }
        Memory(const Memory&) = delete;
        std::vector<T> values() const {
            std::vector<T> all(size);
            EXPECT_EQ(cudaMemcpy(all.data(), pointer, size * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
            return all;
        }
        std::size_t size;
        T* pointer = nullptr;
    };
    static void expect_same(const std::vector<T>& got, const std::vector<T>& expected, const char* what) {
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(wide(got[i]), wide(expected[i])) << what << ", element " << i;
    }
    void SetUp() override { ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS); }
    void TearDown() override { cublasDestroy(handle); }
    cublasHandle_t handle = nullptr;
};
using ExTypes =
    testing::Types<__half, __nv_bfloat16, float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Ex, ExTypes);

// All values are multiples of 1/4, so that sums in double are exact, and are rounded once.
TYPED_TEST(Ex, Level1IsThatOfPlainLoops) {
    using T = TypeParam;
    constexpr cudaDataType kT = TypeOf<T>::k;
    constexpr int n = TestFixture::kN;
    for (const auto& [incx, incy] : {std::pair{1, 1}, std::pair{3, -2}, std::pair{-1, 2}}) {
        const std::vector<T> x = TestFixture::strided(incx, 1), y = TestFixture::strided(incy, 5);
        const typename TestFixture::Memory dx(x), dy(y);
        const auto at = [&](int i) { return wide(x[TestFixture::place(i, incx)]); };
        const auto other = [&](int i) { return wide(y[TestFixture::place(i, incy)]); };
        std::complex<double> dot, dotc;
        double norm = 0, sum = 0;
        for (int i = 0; i < n; ++i) {
            dot += at(i) * other(i);
            dotc += std::conj(at(i)) * other(i);
            norm += std::norm(at(i));
            sum += std::abs(at(i).real()) + std::abs(at(i).imag());
        }
        T got = narrow<T>(-1);
        ASSERT_EQ(
            cublasDotEx(this->handle, n, dx.pointer, kT, incx, dy.pointer, kT, incy, &got, kT, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(wide(got), wide(narrow<T>(dot)));
        ASSERT_EQ(
            cublasDotcEx(this->handle, n, dx.pointer, kT, incx, dy.pointer, kT, incy, &got, kT, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(wide(got), wide(narrow<T>(dotc)));
        double real = -1;
        ASSERT_EQ(cublasNrm2Ex(this->handle, n, dx.pointer, kT, incx, &real, CUDA_R_64F, CUDA_R_64F),
                  CUBLAS_STATUS_SUCCESS);
        EXPECT_NEAR(real, std::sqrt(norm), 1e-14 * real);
        ASSERT_EQ(cublasAsumEx(this->handle, n, dx.pointer, kT, incx, &real, CUDA_R_64F, CUDA_R_64F),
                  CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(real, sum);

        const float alpha = 2.5F;
        ASSERT_EQ(cublasAxpyEx(this->handle, n, &alpha, CUDA_R_32F, dx.pointer, kT, incx, dy.pointer, kT,
                               incy, CUDA_R_32F),
                  CUBLAS_STATUS_SUCCESS);
        std::vector<T> expected = y;
        for (int i = 0; i < n; ++i)
            expected[TestFixture::place(i, incy)] = narrow<T>(2.5 * at(i) + other(i));
        TestFixture::expect_same(dy.values(), expected, "AxpyEx");
        ASSERT_EQ(cublasSwapEx(this->handle, n, dx.pointer, kT, incx, dy.pointer, kT, incy),
                  CUBLAS_STATUS_SUCCESS);
        std::vector<T> swapped = x, back = expected;
        for (int i = 0; i < n; ++i)
            std::swap(swapped[TestFixture::place(i, incx)], back[TestFixture::place(i, incy)]);
        TestFixture::expect_same(dx.values(), swapped, "SwapEx, x");
        TestFixture::expect_same(dy.values(), back, "SwapEx, y");
        ASSERT_EQ(cublasScalEx(this->handle, n, &alpha, CUDA_R_32F, dx.pointer, kT, incx, CUDA_R_32F),
                  CUBLAS_STATUS_SUCCESS);
        for (int i = 0; i < n; ++i) {
            T& value = swapped[TestFixture::place(i, incx)];
            value = narrow<T>(2.5 * wide(value));
        }
        TestFixture::expect_same(dx.values(), swapped, "ScalEx");
        ASSERT_EQ(cublasCopyEx(this->handle, n, dx.pointer, kT, incx, dy.pointer, kT, incy),
                  CUBLAS_STATUS_SUCCESS);
        for (int i = 0; i < n; ++i)
            back[TestFixture::place(i, incy)] = swapped[TestFixture::place(i, incx)];
        TestFixture::expect_same(dy.values(), back, "CopyEx");

        int largest = -1, smallest = -1;
        ASSERT_EQ(cublasIamaxEx(this->handle, n, dx.pointer, kT, incx, &largest), CUBLAS_STATUS_SUCCESS);
        ASSERT_EQ(cublasIaminEx(this->handle, n, dx.pointer, kT, incx, &smallest), CUBLAS_STATUS_SUCCESS);
        int most = 0, least = 0;
        const auto size = [&](int i) {
            const auto value = wide(swapped[TestFixture::place(i, incx)]);
            return std::abs(value.real()) + std::abs(value.imag());
        };
        for (int i = 1; i < n; ++i) {
            if (size(i) > size(most)) most = i;
            if (size(i) < size(least)) least = i;
        }
        EXPECT_EQ(largest, incx < 0 ? 0 : most + 1);
        EXPECT_EQ(smallest, incx < 0 ? 0 : least + 1);
    }
}

TEST_F(CublasHandle, FunctionsWithTypesCheckThem) {
    const float one = 1;
    float result = 0;
    testing::internal::CaptureStderr();
    EXPECT_EQ(
        cublasDotEx(handle_, 4, &one, CUDA_R_8I, 1, &one, CUDA_R_32F, 1, &result, CUDA_R_32F, CUDA_R_32F),
        CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(cublasScalEx(handle_, -4, &one, CUDA_R_32F, nullptr, CUDA_R_32F, 1, CUDA_R_32F),
              CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasAxpyEx(handle_, 4, &one, CUDA_R_32F, nullptr, CUDA_R_32F, 0, nullptr, CUDA_R_32F, 1,
                           CUDA_R_32F),
              CUBLAS_STATUS_INVALID_VALUE);
    const std::string told = testing::internal::GetCapturedStderr();
    for (const char* part :
         {"cublasDotEx: xType is no type", "cublasScalEx: n is -4", "cublasAxpyEx: incx is 0"})
        EXPECT_NE(told.find(part), std::string::npos) << part << "\n" << told;
}

TEST(CublasLt, AttributesAreGivenBack) {
    cublasLtMatmulDesc_t description = nullptr;
    ASSERT_EQ(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    const std::int32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const void* const bias = description;
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                             sizeof epilogue),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(
        cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
        CUBLAS_STATUS_SUCCESS);
    std::int32_t number = -1;
    const void* pointer = nullptr;
    std::size_t written = 0;
    EXPECT_EQ(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &number,
                                             sizeof number, &written),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(number, epilogue);
    EXPECT_EQ(written, sizeof number);
    EXPECT_EQ(
        cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr, 0, &written),
        CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(written, sizeof pointer);
    EXPECT_EQ(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer,
                                             sizeof pointer, nullptr),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(pointer, bias);
    EXPECT_EQ(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &number,
                                             sizeof number, nullptr),
              CUBLAS_STATUS_INVALID_VALUE)
        << "4 bytes for a pointer";
    cublasLtMatmulDescDestroy(description);

    cublasLtMatrixLayout_t layout = nullptr;
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, 5, 7, 9), CUBLAS_STATUS_SUCCESS);
    const std::int32_t batch = 3;
    const std::int64_t stride = 64;
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                     sizeof stride);
    std::int64_t wide_number = 0;
    const std::pair<cublasLtMatrixLayoutAttribute_t, std::int64_t> wide_ones[] = {
        {CUBLASLT_MATRIX_LAYOUT_ROWS, 5},
        {CUBLASLT_MATRIX_LAYOUT_COLS, 7},
        {CUBLASLT_MATRIX_LAYOUT_LD, 9},
        {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 64}};
    for (const auto& [attribute, expected] : wide_ones) {
        EXPECT_EQ(
            cublasLtMatrixLayoutGetAttribute(layout, attribute, &wide_number, sizeof wide_number, nullptr),
            CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(wide_number, expected);
    }
    EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &number,
                                               sizeof number, nullptr),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(number, 3);
    cublasLtMatrixLayoutDestroy(layout);

    cublasLtMatmulPreference_t preference = nullptr;
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    const std::size_t most = 1 << 20;
    std::size_t got = 0;
    EXPECT_EQ(cublasLtMatmulPreferenceGetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &got,
                                                   sizeof got, nullptr),
              CUBLAS_STATUS_NOT_SUPPORTED);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                         sizeof most);
    EXPECT_EQ(cublasLtMatmulPreferenceGetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &got,
                                                   sizeof got, nullptr),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(got, most);
    cublasLtMatmulPreferenceDestroy(preference);
}

TEST(Cublas64, NamesTakeSizesOf64Bits) {
    cublasHandle_t handle;
    ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    const std::vector<float> host = {1, 2, 3, 4, 0, 0, 0, 0};
    float* data = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&data), 8 * sizeof(float));
    cudaMemcpy(data, host.data(), 8 * sizeof(float), cudaMemcpyHostToDevice);
    const int64_t n = 2;
    const float alpha = 1, beta = 0;
    float dot = 0;
    EXPECT_EQ(cublasSdot_64(handle, n * n, data, 1, data, int64_t{1}, &dot), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(dot, 30);
    EXPECT_EQ(cublasSgemm_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, data, n, data, n, &beta,
                             data + 4, n),
              CUBLAS_STATUS_SUCCESS);
    std::vector<float> product(4);
    cudaMemcpy(product.data(), data + 4, 4 * sizeof(float), cudaMemcpyDeviceToHost);
    EXPECT_EQ(product, (std::vector<float>{7, 10, 15, 22}));
    testing::internal::CaptureStderr();
    EXPECT_EQ(cublasSdot_64(handle, (int64_t{1} << 32) + 4, data, 1, data, 1, &dot),
              CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("cublasSdot_64: a size of 2^31 or more"),
              std::string::npos);
    cudaFree(data);
    cublasDestroy(handle);
}

}  // namespace
