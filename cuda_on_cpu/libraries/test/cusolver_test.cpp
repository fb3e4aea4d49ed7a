// cuSOLVER: factorisations are multiplied out and compared with the matrix by plain loops, on
// shapes and leading dimensions that are no multiples of anything. The tolerance is the residual's
// usual bound, a small multiple of the size times the type's epsilon times the matrix's norm.
#include <cusolverDn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

template <class T>
class Device {
  public:
    explicit Device(const std::vector<T>& values) : size_(values.size()) {
        cudaMalloc(reinterpret_cast<void**>(&pointer_), std::max<std::size_t>(1, size_) * sizeof(T));
        cudaMemcpy(pointer_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~Device() { cudaFree(pointer_); }
    Device(const Device&) = delete;
    T* data() const { return pointer_; }
    std::vector<T> values() const {
        std::vector<T> all(size_);
        EXPECT_EQ(cudaMemcpy(all.data(), pointer_, size_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return all;
    }

  private:
    std::size_t size_;
    T* pointer_ = nullptr;
};

template <class T>
struct RealOf {
    using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
    using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
constexpr bool kComplex = !std::is_same_v<T, Real<T>>;
template <class T>
T conj_of(T value) {
    if constexpr (kComplex<T>)
        return std::conj(value);
    else
        return value;
}

// A column-major matrix on the host, without padding.
template <class T>
struct Matrix {
    int rows, columns;
    std::vector<T> values;
    Matrix(int m, int n) : rows(m), columns(n), values(static_cast<std::size_t>(m) * n) {}
    T& operator()(int i, int j) { return values[i + static_cast<std::size_t>(j) * rows]; }
    const T& operator()(int i, int j) const { return values[i + static_cast<std::size_t>(j) * rows]; }
};
template <class T>
Matrix<T> random_matrix(int m, int n, unsigned seed) {
    Matrix<T> A(m, n);
    std::mt19937 generator(seed);
    std::uniform_real_distribution<Real<T>> number(-1, 1);
    for (T& value : A.values) {
        if constexpr (kComplex<T>)
            value = T(number(generator), number(generator));
        else
            value = number(generator);
    }
    return A;
}
template <class T>
Matrix<T> adjoint(const Matrix<T>& A) {
    Matrix<T> B(A.columns, A.rows);
    for (int i = 0; i < A.rows; ++i)
        for (int j = 0; j < A.columns; ++j)
            B(j, i) = conj_of(A(i, j));
    return B;
}
template <class T>
Matrix<T> operator*(const Matrix<T>& A, const Matrix<T>& B) {
    Matrix<T> C(A.rows, B.columns);
    for (int i = 0; i < A.rows; ++i)
        for (int j = 0; j < B.columns; ++j)
            for (int k = 0; k < A.columns; ++k)
                C(i, j) += A(i, k) * B(k, j);
    return C;
}
template <class T>
Matrix<T> hermitian(int n, unsigned seed, bool positive) {
    Matrix<T> A = random_matrix<T>(n, n, seed);
    if (positive) {
        A = A * adjoint(A);
        for (int i = 0; i < n; ++i)
            A(i, i) += T(1);
        return A;
    }
    for (int i = 0; i < n; ++i) {
        A(i, i) = T(std::real(A(i, i)));
        for (int j = 0; j < i; ++j)
            A(i, j) = conj_of(A(j, i));
    }
    return A;
}
template <class T>
Real<T> largest(const Matrix<T>& A) {
    Real<T> most = 0;
    for (const T& value : A.values)
        most = std::max<Real<T>>(most, std::abs(value));
    return most;
}
template <class T>
void expect_near(const Matrix<T>& got, const Matrix<T>& expected, const char* what) {
    ASSERT_EQ(got.values.size(), expected.values.size()) << what;
    const Real<T> bound = 40 * static_cast<Real<T>>(std::max(got.rows, got.columns)) *
                          std::numeric_limits<Real<T>>::epsilon() * std::max<Real<T>>(1, largest(expected));
    for (std::size_t i = 0; i < got.values.size(); ++i)
        ASSERT_LE(std::abs(got.values[i] - expected.values[i]), bound) << what << ", element " << i;
}

constexpr int kPad = 3;  // rows between the columns, which stay as they are
template <class T>
std::vector<T> padded(const Matrix<T>& A) {
    std::vector<T> all(static_cast<std::size_t>(A.rows + kPad) * A.columns, T(77));
    for (int j = 0; j < A.columns; ++j)
        std::copy_n(&A.values[static_cast<std::size_t>(j) * A.rows], A.rows,
                    &all[static_cast<std::size_t>(j) * (A.rows + kPad)]);
    return all;
}
template <class T>
Matrix<T> unpadded(const std::vector<T>& all, int rows, int columns) {
    Matrix<T> A(rows, columns);
    for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < rows + kPad; ++i) {
            const T value = all[i + static_cast<std::size_t>(j) * (rows + kPad)];
            if (i < rows)
                A(i, j) = value;
            else
                EXPECT_EQ(value, T(77)) << "the rows behind the matrix";
        }
    }
    return A;
}

cuComplex* c(std::complex<float>* p) {
    return reinterpret_cast<cuComplex*>(p);
}
cuDoubleComplex* c(std::complex<double>* p) {
    return reinterpret_cast<cuDoubleComplex*>(p);
}
float* c(float* p) {
    return p;
}
double* c(double* p) {
    return p;
}

// The functions of a type, without the letter.
template <class T>
struct Solver;
#define SOLVER(T, S, Q, E)                                                  \
    template <>                                                             \
    struct Solver<T> {                                                      \
        static constexpr auto getrf_size = cusolverDn##S##getrf_bufferSize; \
        static constexpr auto getrf = cusolverDn##S##getrf;                 \
        static constexpr auto getrs = cusolverDn##S##getrs;                 \
        static constexpr auto potrf_size = cusolverDn##S##potrf_bufferSize; \
        static constexpr auto potrf = cusolverDn##S##potrf;                 \
        static constexpr auto potrs = cusolverDn##S##potrs;                 \
        static constexpr auto potri = cusolverDn##S##potri;                 \
        static constexpr auto potrfBatched = cusolverDn##S##potrfBatched;   \
        static constexpr auto potrsBatched = cusolverDn##S##potrsBatched;   \
        static constexpr auto geqrf_size = cusolverDn##S##geqrf_bufferSize; \
        static constexpr auto geqrf = cusolverDn##S##geqrf;                 \
        static constexpr auto mqr_size = cusolverDn##Q##mqr_bufferSize;     \
        static constexpr auto mqr = cusolverDn##Q##mqr;                     \
        static constexpr auto gqr_size = cusolverDn##Q##gqr_bufferSize;     \
        static constexpr auto gqr = cusolverDn##Q##gqr;                     \
        static constexpr auto evd_size = cusolverDn##E##evd_bufferSize;     \
        static constexpr auto evd = cusolverDn##E##evd;                     \
        static constexpr auto gvd_size = cusolverDn##E##gvd_bufferSize;     \
        static constexpr auto gvd = cusolverDn##E##gvd;                     \
        static constexpr auto gesvd_size = cusolverDn##S##gesvd_bufferSize; \
        static constexpr auto gesvd = cusolverDn##S##gesvd;                 \
    };
SOLVER(float, S, Sor, Ssy)
SOLVER(double, D, Dor, Dsy)
SOLVER(std::complex<float>, C, Cun, Che)
SOLVER(std::complex<double>, Z, Zun, Zhe)
#undef SOLVER

template <class T>
class OfType : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(cusolverDnCreate(&handle), cusolverStatus_t(CUSOLVER_STATUS_SUCCESS)); }
    void TearDown() override { EXPECT_EQ(cusolverDnDestroy(handle), CUSOLVER_STATUS_SUCCESS); }
    void expect_info(const Device<int>& info, int expected = 0) { EXPECT_EQ(info.values()[0], expected); }
    cusolverDnHandle_t handle = nullptr;
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(OfType, Types);

constexpr int kSizes[] = {1, 2, 17, 65};

TYPED_TEST(OfType, LuSolvesInAllThreeForms) {
    using T = TypeParam;
    using S = Solver<T>;
    for (const int n : kSizes) {
        for (const bool pivots : {true, false}) {
            Matrix<T> A = random_matrix<T>(n, n, 10 + n);
            if (!pivots) {
                for (int i = 0; i < n; ++i)
                    A(i, i) += T(static_cast<Real<T>>(n));
            }
            const Matrix<T> B = random_matrix<T>(n, 3, 20 + n);
            Device<T> a(padded(A));
            Device<int> ipiv(std::vector<int>(n, -9)), info(std::vector<int>{-7});
            int lwork = 0;
            ASSERT_EQ(S::getrf_size(this->handle, n, n, c(a.data()), n + kPad, &lwork),
                      CUSOLVER_STATUS_SUCCESS);
            Device<T> work{std::vector<T>(lwork)};
            int* const p = pivots ? ipiv.data() : nullptr;
            ASSERT_EQ(S::getrf(this->handle, n, n, c(a.data()), n + kPad, c(work.data()), p, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            this->expect_info(info);
            for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
                Device<T> b(padded(B));
                ASSERT_EQ(S::getrs(this->handle, op, n, 3, c(a.data()), n + kPad, p, c(b.data()), n + kPad,
                                   info.data()),
                          CUSOLVER_STATUS_SUCCESS);
                this->expect_info(info);
                const Matrix<T> X = unpadded(b.values(), n, 3);
                Matrix<T> opA = A;
                for (int i = 0; i < n; ++i)
                    for (int j = 0; j < n; ++j)
                        if (op != CUBLAS_OP_N) opA(i, j) = op == CUBLAS_OP_C ? conj_of(A(j, i)) : A(j, i);
                Matrix<T> R = opA * X;
                // The residual is relative to |A| |X|.
                const Real<T> scale = std::max<Real<T>>(1, largest(A) * largest(X));
                for (std::size_t i = 0; i < R.values.size(); ++i)
                    ASSERT_LE(std::abs(R.values[i] - B.values[i]),
                              100 * n * std::numeric_limits<Real<T>>::epsilon() * scale)
                        << "n " << n << ", op " << op << ", pivots " << pivots;
            }
        }
    }
}

TYPED_TEST(OfType, LuOfRectanglesIsPLU) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair{13, 7}, std::pair{7, 13}}) {
        const Matrix<T> A = random_matrix<T>(m, n, 31);
        Device<T> a(padded(A)), work{std::vector<T>(32 * 13)};
        Device<int> ipiv(std::vector<int>(7)), info(std::vector<int>{-7});
        ASSERT_EQ(Solver<T>::getrf(this->handle, m, n, c(a.data()), m + kPad, c(work.data()), ipiv.data(),
                                   info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        const Matrix<T> F = unpadded(a.values(), m, n);
        Matrix<T> L(m, 7), U(7, n);
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < 7; ++j)
                L(i, j) = i == j ? T(1) : i > j ? F(i, j) : T(0);
        for (int i = 0; i < 7; ++i)
            for (int j = i; j < n; ++j)
                U(i, j) = F(i, j);
        Matrix<T> P = A;
        const std::vector<int> swaps = ipiv.values();
        for (int i = 0; i < 7; ++i)
            for (int j = 0; j < n; ++j)
                std::swap(P(i, j), P(swaps[i] - 1, j));
        expect_near(L * U, P, "L U and P A");
    }
}

TYPED_TEST(OfType, ASingularMatrixIsToldInInfo) {
    using T = TypeParam;
    Matrix<T> A = random_matrix<T>(5, 5, 3);
    for (int i = 0; i < 5; ++i)
        A(i, 2) = T(0);
    for (const bool pivots : {true, false}) {
        Device<T> a(padded(A)), work{std::vector<T>(160)};
        Device<int> ipiv(std::vector<int>(5)), info(std::vector<int>{-7});
        ASSERT_EQ(Solver<T>::getrf(this->handle, 5, 5, c(a.data()), 5 + kPad, c(work.data()),
                                   pivots ? ipiv.data() : nullptr, info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        this->expect_info(info, 3);
    }
}

TYPED_TEST(OfType, CholeskyOfBothTrianglesSolvesAndInverts) {
    using T = TypeParam;
    using S = Solver<T>;
    for (const int n : kSizes) {
        const Matrix<T> A = hermitian<T>(n, 40 + n, true);
        for (const cublasFillMode_t uplo : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
            Device<T> a(padded(A));
            Device<int> info(std::vector<int>{-7});
            int lwork = 0;
            ASSERT_EQ(S::potrf_size(this->handle, uplo, n, nullptr, n + kPad, &lwork),
                      CUSOLVER_STATUS_SUCCESS);
            Device<T> work{std::vector<T>(lwork)};
            ASSERT_EQ(
                S::potrf(this->handle, uplo, n, c(a.data()), n + kPad, c(work.data()), lwork, info.data()),
                CUSOLVER_STATUS_SUCCESS);
            this->expect_info(info);
            Matrix<T> L = unpadded(a.values(), n, n);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    const bool stored = uplo == CUBLAS_FILL_MODE_LOWER ? j <= i : i <= j;
                    if (!stored) {
                        EXPECT_EQ(L(i, j), A(i, j)) << "the other triangle stays";
                        L(i, j) = T(0);
                    }
                }
            }
            expect_near(uplo == CUBLAS_FILL_MODE_LOWER ? L * adjoint(L) : adjoint(L) * L, A, "L L^H");
            const Matrix<T> X = random_matrix<T>(n, 2, 9);
            const Matrix<T> B = A * X;
            Device<T> b(padded(B));
            ASSERT_EQ(
                S::potrs(this->handle, uplo, n, 2, c(a.data()), n + kPad, c(b.data()), n + kPad, info.data()),
                CUSOLVER_STATUS_SUCCESS);
            expect_near(A * unpadded(b.values(), n, 2), B, "A X");
            ASSERT_EQ(
                S::potri(this->handle, uplo, n, c(a.data()), n + kPad, c(work.data()), lwork, info.data()),
                CUSOLVER_STATUS_SUCCESS);
            Matrix<T> inverse = unpadded(a.values(), n, n);
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j)
                    if (uplo == CUBLAS_FILL_MODE_LOWER ? j > i : i > j)
                        inverse(i, j) = conj_of(inverse(j, i));
            Matrix<T> one(n, n);
            for (int i = 0; i < n; ++i)
                one(i, i) = T(1);
            // A is at most about n, and its inverse at most 1.
            const Matrix<T> product = A * inverse;
            const Real<T> bound =
                40 * n * n * std::numeric_limits<Real<T>>::epsilon() * std::max<Real<T>>(1, largest(A));
            for (std::size_t i = 0; i < one.values.size(); ++i)
                ASSERT_LE(std::abs(product.values[i] - one.values[i]), bound);
        }
    }
    // Not positive definite: the leading minor of order 2.
    Matrix<T> A = hermitian<T>(4, 1, true);
    A(1, 1) = T(-100);
    Device<T> a(A.values), work{std::vector<T>(128)};
    Device<int> info(std::vector<int>{-7});
    ASSERT_EQ(
        S::potrf(this->handle, CUBLAS_FILL_MODE_LOWER, 4, c(a.data()), 4, c(work.data()), 128, info.data()),
        CUSOLVER_STATUS_SUCCESS);
    this->expect_info(info, 2);
}

TYPED_TEST(OfType, CholeskyInBatches) {
    using T = TypeParam;
    constexpr int kN = 5;
    const Matrix<T> A0 = hermitian<T>(kN, 1, true), A1 = hermitian<T>(kN, 2, true);
    const Matrix<T> X = random_matrix<T>(kN, 1, 3);
    Device<T> a0(A0.values), a1(A1.values), b0((A0 * X).values), b1((A1 * X).values);
    using C = std::remove_pointer_t<decltype(c(a0.data()))>;
    Device<C*> a(std::vector<C*>{c(a0.data()), c(a1.data())}), b(std::vector<C*>{c(b0.data()), c(b1.data())});
    Device<int> info(std::vector<int>{-7, -7});
    ASSERT_EQ(Solver<T>::potrfBatched(this->handle, CUBLAS_FILL_MODE_LOWER, kN, a.data(), kN, info.data(), 2),
              CUSOLVER_STATUS_SUCCESS);
    EXPECT_EQ(info.values(), (std::vector<int>{0, 0}));
    ASSERT_EQ(Solver<T>::potrsBatched(this->handle, CUBLAS_FILL_MODE_LOWER, kN, 1, a.data(), kN, b.data(), kN,
                                      info.data(), 2),
              CUSOLVER_STATUS_SUCCESS);
    for (const auto& [A, x] : {std::pair{&A0, &b0}, std::pair{&A1, &b1}}) {
        Matrix<T> got(kN, 1);
        got.values = x->values();
        expect_near(*A * got, *A * X, "A x");
    }
}

TYPED_TEST(OfType, QrIsMultipliedOut) {
    using T = TypeParam;
    using S = Solver<T>;
    for (const auto& [m, n] : {std::pair{1, 1}, std::pair{19, 6}, std::pair{33, 33}, std::pair{5, 9}}) {
        const Matrix<T> A = random_matrix<T>(m, n, 50 + m);
        const int k = std::min(m, n);
        Device<T> a(padded(A)), tau{std::vector<T>(k)};
        Device<int> info(std::vector<int>{-7});
        int lwork = 0;
        ASSERT_EQ(S::geqrf_size(this->handle, m, n, c(a.data()), m + kPad, &lwork), CUSOLVER_STATUS_SUCCESS);
        Device<T> work{std::vector<T>(lwork)};
        ASSERT_EQ(S::geqrf(this->handle, m, n, c(a.data()), m + kPad, c(tau.data()), c(work.data()), lwork,
                           info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        this->expect_info(info);
        Matrix<T> R(m, n);
        const Matrix<T> F = unpadded(a.values(), m, n);
        for (int j = 0; j < n; ++j)
            for (int i = 0; i <= std::min(j, m - 1); ++i)
                R(i, j) = F(i, j);
        // Q R by ormqr, and Q^H (Q R) back.
        Device<T> q(padded(R));
        const auto op_c = kComplex<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
        int size = 0;
        ASSERT_EQ(S::mqr_size(this->handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, m, n, k, c(a.data()), m + kPad,
                              c(tau.data()), c(q.data()), m + kPad, &size),
                  CUSOLVER_STATUS_SUCCESS);
        Device<T> more{std::vector<T>(size)};
        for (const auto op : {CUBLAS_OP_N, op_c}) {
            ASSERT_EQ(S::mqr(this->handle, CUBLAS_SIDE_LEFT, op, m, n, k, c(a.data()), m + kPad,
                             c(tau.data()), c(q.data()), m + kPad, c(more.data()), size, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            expect_near(unpadded(q.values(), m, n), op == CUBLAS_OP_N ? A : R, "Q R, and R back");
        }
        // From the right: (R^H Q^H)^H is Q R again.
        const Matrix<T> RH = adjoint(R);
        Device<T> right(padded(RH));
        ASSERT_EQ(S::mqr(this->handle, CUBLAS_SIDE_RIGHT, op_c, n, m, k, c(a.data()), m + kPad, c(tau.data()),
                         c(right.data()), n + kPad, c(more.data()), size, info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        expect_near(unpadded(right.values(), n, m), adjoint(A), "R^H Q^H");
        if (m < n) continue;
        int q_size = 0;
        ASSERT_EQ(S::gqr_size(this->handle, m, n, k, c(a.data()), m + kPad, c(tau.data()), &q_size),
                  CUSOLVER_STATUS_SUCCESS);
        ASSERT_EQ(S::gqr(this->handle, m, n, k, c(a.data()), m + kPad, c(tau.data()), c(work.data()), lwork,
                         info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        const Matrix<T> Q = unpadded(a.values(), m, n);
        Matrix<T> one(n, n), square(n, n);
        for (int i = 0; i < n; ++i) {
            one(i, i) = T(1);
            for (int j = i; j < n; ++j)
                square(i, j) = R(i, j);
        }
        expect_near(adjoint(Q) * Q, one, "Q^H Q");
        expect_near(Q * square, A, "Q R");
    }
}

TYPED_TEST(OfType, EigenvaluesAscendAndHaveTheirVectors) {
    using T = TypeParam;
    using S = Solver<T>;
    for (const int n : kSizes) {
        const Matrix<T> A = hermitian<T>(n, 60 + n, false);
        std::vector<Real<T>> only_values;
        for (const auto mode : {CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR}) {
            const auto uplo = n % 2 == 0 ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
            Device<T> a(padded(A));
            Device<Real<T>> w(std::vector<Real<T>>(n, NAN));
            Device<int> info(std::vector<int>{-7});
            int lwork = 0;
            ASSERT_EQ(S::evd_size(this->handle, mode, uplo, n, c(a.data()), n + kPad, w.data(), &lwork),
                      CUSOLVER_STATUS_SUCCESS);
            Device<T> work{std::vector<T>(lwork)};
            ASSERT_EQ(S::evd(this->handle, mode, uplo, n, c(a.data()), n + kPad, w.data(), c(work.data()),
                             lwork, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            this->expect_info(info);
            const std::vector<Real<T>> values = w.values();
            EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
            if (mode == CUSOLVER_EIG_MODE_NOVECTOR) {
                only_values = values;
                continue;
            }
            const Matrix<T> V = unpadded(a.values(), n, n);
            Matrix<T> VW = V, one(n, n);
            for (int j = 0; j < n; ++j) {
                one(j, j) = T(1);
                EXPECT_NEAR(values[j], only_values[j], 100 * n * std::numeric_limits<Real<T>>::epsilon());
                for (int i = 0; i < n; ++i)
                    VW(i, j) *= values[j];
            }
            expect_near(A * V, VW, "A V and V W");
            expect_near(adjoint(V) * V, one, "V^H V");
        }
    }
}

TYPED_TEST(OfType, GeneralisedEigenvalues) {
    using T = TypeParam;
    using S = Solver<T>;
    constexpr int kN = 9;
    const Matrix<T> A = hermitian<T>(kN, 5, false), B = hermitian<T>(kN, 6, true);
    Device<T> a(A.values), b(B.values);
    Device<Real<T>> w{std::vector<Real<T>>(kN)};
    Device<int> info(std::vector<int>{-7});
    int lwork = 0;
    ASSERT_EQ(S::gvd_size(this->handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                          kN, c(a.data()), kN, c(b.data()), kN, w.data(), &lwork),
              CUSOLVER_STATUS_SUCCESS);
    Device<T> work{std::vector<T>(lwork)};
    ASSERT_EQ(S::gvd(this->handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, kN,
                     c(a.data()), kN, c(b.data()), kN, w.data(), c(work.data()), lwork, info.data()),
              CUSOLVER_STATUS_SUCCESS);
    this->expect_info(info);
    Matrix<T> V(kN, kN);
    V.values = a.values();
    Matrix<T> BVW = B * V;
    for (int j = 0; j < kN; ++j)
        for (int i = 0; i < kN; ++i)
            BVW(i, j) *= w.values()[j];
    expect_near(A * V, BVW, "A V and B V W");
}

TYPED_TEST(OfType, SingularValuesAreMultipliedOut) {
    using T = TypeParam;
    using S = Solver<T>;
    for (const auto& [m, n] : {std::pair{1, 1}, std::pair{11, 4}, std::pair{8, 8}}) {
        const Matrix<T> A = random_matrix<T>(m, n, 70 + m);
        for (const char job : {'S', 'A'}) {
            const int columns = job == 'A' ? m : n;
            Device<T> a(padded(A)), u{padded(Matrix<T>(m, columns))}, vt{padded(Matrix<T>(n, n))};
            Device<Real<T>> s(std::vector<Real<T>>(n, NAN));
            Device<int> info(std::vector<int>{-7});
            int lwork = 0;
            ASSERT_EQ(S::gesvd_size(this->handle, m, n, &lwork), CUSOLVER_STATUS_SUCCESS);
            Device<T> work{std::vector<T>(lwork)};
            ASSERT_EQ(S::gesvd(this->handle, job, job, m, n, c(a.data()), m + kPad, s.data(), c(u.data()),
                               m + kPad, c(vt.data()), n + kPad, c(work.data()), lwork, nullptr, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            this->expect_info(info);
            Matrix<T> US(m, n);
            const Matrix<T> U = unpadded(u.values(), m, columns);
            const std::vector<Real<T>> values = s.values();
            EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
            for (int j = 0; j < n; ++j)
                for (int i = 0; i < m; ++i)
                    US(i, j) = U(i, j) * values[j];
            expect_near(US * unpadded(vt.values(), n, n), A, "U S V^H");
        }
    }
}

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<std::complex<float>> = CUDA_C_32F;
template <>
constexpr cudaDataType kType<std::complex<double>> = CUDA_C_64F;

TYPED_TEST(OfType, TheFunctionsWith64BitSizes) {
    using T = TypeParam;
    constexpr cudaDataType kT = kType<T>, kReal = kType<Real<T>>;
    constexpr int kN = 7;
    cusolverDnParams_t params = nullptr;
    ASSERT_EQ(cusolverDnCreateParams(&params), CUSOLVER_STATUS_SUCCESS);
    ASSERT_EQ(cusolverDnSetAdvOptions(params, CUSOLVERDN_GETRF, CUSOLVER_ALG_0), CUSOLVER_STATUS_SUCCESS);
    Device<int> info(std::vector<int>{-7});
    size_t device = 0, host = 0;
    const Matrix<T> A = hermitian<T>(kN, 4, true), X = random_matrix<T>(kN, 2, 5), B = A * X;
    for (const bool cholesky : {false, true}) {
        Device<T> a(padded(A)), b(padded(B));
        Device<int64_t> ipiv{std::vector<int64_t>(kN)};
        if (cholesky) {
            ASSERT_EQ(cusolverDnXpotrf_bufferSize(this->handle, params, CUBLAS_FILL_MODE_UPPER, kN, kT,
                                                  a.data(), kN + kPad, kT, &device, &host),
                      CUSOLVER_STATUS_SUCCESS);
        } else {
            ASSERT_EQ(cusolverDnXgetrf_bufferSize(this->handle, params, kN, kN, kT, a.data(), kN + kPad, kT,
                                                  &device, &host),
                      CUSOLVER_STATUS_SUCCESS);
        }
        Device<char> buffer{std::vector<char>(device)};
        if (cholesky) {
            ASSERT_EQ(cusolverDnXpotrf(this->handle, params, CUBLAS_FILL_MODE_UPPER, kN, kT, a.data(),
                                       kN + kPad, kT, buffer.data(), device, nullptr, host, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            ASSERT_EQ(cusolverDnXpotrs(this->handle, params, CUBLAS_FILL_MODE_UPPER, kN, 2, kT, a.data(),
                                       kN + kPad, kT, b.data(), kN + kPad, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
        } else {
            ASSERT_EQ(cusolverDnXgetrf(this->handle, params, kN, kN, kT, a.data(), kN + kPad, ipiv.data(), kT,
                                       buffer.data(), device, nullptr, host, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
            ASSERT_EQ(cusolverDnXgetrs(this->handle, params, CUBLAS_OP_N, kN, 2, kT, a.data(), kN + kPad,
                                       ipiv.data(), kT, b.data(), kN + kPad, info.data()),
                      CUSOLVER_STATUS_SUCCESS);
        }
        this->expect_info(info);
        expect_near(A * unpadded(b.values(), kN, 2), B, cholesky ? "Cholesky" : "LU");
    }
    Device<T> a(padded(A)), tau{std::vector<T>(kN)};
    Device<Real<T>> w{std::vector<Real<T>>(kN)};
    ASSERT_EQ(
        cusolverDnXsyevd_bufferSize(this->handle, params, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER,
                                    kN, kT, a.data(), kN + kPad, kReal, w.data(), kT, &device, &host),
        CUSOLVER_STATUS_SUCCESS);
    Device<char> buffer{std::vector<char>(device)};
    ASSERT_EQ(cusolverDnXsyevd(this->handle, params, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER, kN,
                               kT, a.data(), kN + kPad, kReal, w.data(), kT, buffer.data(), device, nullptr,
                               host, info.data()),
              CUSOLVER_STATUS_SUCCESS);
    Real<T> trace = 0, sum = 0;
    for (int i = 0; i < kN; ++i) {
        trace += std::real(A(i, i));
        sum += w.values()[i];
    }
    EXPECT_NEAR(sum, trace, 100 * trace * std::numeric_limits<Real<T>>::epsilon());
    Device<T> again(padded(A));
    ASSERT_EQ(cusolverDnXgeqrf_bufferSize(this->handle, params, kN, kN, kT, again.data(), kN + kPad, kT,
                                          tau.data(), kT, &device, &host),
              CUSOLVER_STATUS_SUCCESS);
    ASSERT_EQ(cusolverDnXgeqrf(this->handle, params, kN, kN, kT, again.data(), kN + kPad, kT, tau.data(), kT,
                               buffer.data(), device, nullptr, host, info.data()),
              CUSOLVER_STATUS_SUCCESS);
    Matrix<T> R = unpadded(again.values(), kN, kN);
    for (int i = 0; i < kN; ++i)
        for (int j = 0; j < i; ++j)
            R(i, j) = T(0);
    expect_near(adjoint(R) * R, adjoint(A) * A, "R^H R");
    EXPECT_EQ(cusolverDnDestroyParams(params), CUSOLVER_STATUS_SUCCESS);
}

// --- Errors --------------------------------------------------------------------------------------

TEST(Errors, NameTheArgument) {
    cusolverDnHandle_t handle = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cusolverDnSetStream(nullptr, nullptr), CUSOLVER_STATUS_NOT_INITIALIZED);
    ASSERT_EQ(cusolverDnCreate(&handle), CUSOLVER_STATUS_SUCCESS);
    Device<float> a(std::vector<float>(16)), work{std::vector<float>(200)};
    Device<int> info(std::vector<int>{0});
    int lwork = 0;
    EXPECT_EQ(cusolverDnSgetrf_bufferSize(handle, 4, 4, a.data(), 3, &lwork), CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, 4, a.data(), 4, work.data(), 7, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_FULL, 4, a.data(), 4, work.data(), 200, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSgetrs(handle, CUBLAS_OP_N, 4, 1, a.data(), 4, nullptr, nullptr, 4, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSgesvd(handle, 'X', 'N', 4, 4, a.data(), 4, a.data(), nullptr, 1, nullptr, 1,
                               work.data(), 200, nullptr, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSgesvd(handle, 'N', 'N', 2, 4, a.data(), 4, a.data(), nullptr, 1, nullptr, 1,
                               work.data(), 200, nullptr, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnSgetrf(handle, 4, -1, a.data(), 4, work.data(), nullptr, info.data()),
              CUSOLVER_STATUS_INVALID_VALUE);
    EXPECT_EQ(cusolverDnXgetrf_bufferSize(handle, nullptr, 4, 4, CUDA_R_16F, a.data(), 4, CUDA_R_16F, nullptr,
                                          nullptr),
              CUSOLVER_STATUS_INVALID_VALUE);
    const std::string report = testing::internal::GetCapturedStderr();
    for (const char* part :
         {"cusolverDnSetStream: the handle is null",
          "cusolverDnSgetrf_bufferSize: lda is 3; expected at least 4",
          "Lwork is 7; expected at least 128 (CUSOLVER_STATUS_INVALID_VALUE)", "uplo is 2; expected 0 to 1",
          "cusolverDnSgetrs: B is null", "jobu is 'X'", "m is 2; expected at least n, 4",
          "n is -1; expected at least 0", "workspaceInBytesOnDevice is null"})
        EXPECT_NE(report.find(part), std::string::npos) << part << "\n" << report;
    EXPECT_EQ(cusolverDnDestroy(handle), CUSOLVER_STATUS_SUCCESS);
}

// Memory that is too small, or of the host, is reported as after a kernel.
TEST(Errors, OfMemoryAreToldAtTheNextSynchronisation) {
    cusolverDnHandle_t handle = nullptr;
    ASSERT_EQ(cusolverDnCreate(&handle), CUSOLVER_STATUS_SUCCESS);
    std::vector<float> host(16, 1);
    {
        Device<float> work{std::vector<float>(128)};
        Device<int> info(std::vector<int>{0});
        testing::internal::CaptureStderr();
        EXPECT_EQ(cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, 4, host.data(), 4, work.data(), 128,
                                   info.data()),
                  CUSOLVER_STATUS_SUCCESS);
        EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
        const std::string report = testing::internal::GetCapturedStderr();
        EXPECT_NE(report.find("cusolverDnSpotrf: A"), std::string::npos) << report;
        EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    }
    EXPECT_EQ(cusolverDnDestroy(handle), CUSOLVER_STATUS_SUCCESS);
}

}  // namespace
