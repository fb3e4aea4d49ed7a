// cuSOLVER for dense matrices: arguments are checked, and LAPACK works in the handle's stream. A
// workspace must be device memory of the size that bufferSize returns, and is not used: LAPACK
// gets one of the host.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "cusolverDn.h"
#include "lapack.hpp"
#include "library_arguments.hpp"
#include "stream.hpp"

struct cusolverDnContext {
    cudaStream_t stream = nullptr;
    cusolverDeterministicMode_t mode = CUSOLVER_DETERMINISTIC_RESULTS;
};
struct cusolverDnParams {};

namespace cuda_on_cpu::solver {
namespace {

std::mutex mutex;
std::set<cusolverDnHandle_t>& handles() {
    static auto* alive = new std::set<cusolverDnHandle_t>;  // usable until the last static destructor
    return *alive;
}

const char* name_of(cusolverStatus_t status) {
    switch (status) {
        case CUSOLVER_STATUS_NOT_INITIALIZED:
            return "CUSOLVER_STATUS_NOT_INITIALIZED";
        case CUSOLVER_STATUS_INVALID_VALUE:
            return "CUSOLVER_STATUS_INVALID_VALUE";
        case CUSOLVER_STATUS_NOT_SUPPORTED:
            return "CUSOLVER_STATUS_NOT_SUPPORTED";
        default:
            return "CUSOLVER_STATUS_EXECUTION_FAILED";
    }
}

template <class T>
struct RealOf {
    using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
    using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

// One call. The checks stop at the first failure, which sets the status.
class Call {
  public:
    Call(cusolverDnHandle_t handle, const char* function) : handle_(handle), function_(function) {
        const std::scoped_lock lock(mutex);
        if (handles().contains(handle)) return;
        std::fprintf(stderr, "cuda_on_cpu: %s: the handle is %s (CUSOLVER_STATUS_NOT_INITIALIZED)\n",
                     function,
                     handle == nullptr ? "null; expected one of cusolverDnCreate"
                                       : "not one of cusolverDnCreate (any more)");
        status_ = CUSOLVER_STATUS_NOT_INITIALIZED;
    }

    [[gnu::format(printf, 3, 4)]] Call& require(bool condition, const char* format, ...) {
        if (!ok() || condition) return *this;
        std::va_list arguments;
        va_start(arguments, format);
        char message[256];
        std::vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        status_ = CUSOLVER_STATUS_INVALID_VALUE;
        std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function_, message, name_of(status_));
        return *this;
    }
    Call& at_least(const char* name, long long value, long long least) {
        return require(value >= least, "%s is %lld; expected at least %lld", name, value, least);
    }
    Call& size(const char* name, long long value) {
        at_least(name, value, 0);
        return require(value <= std::numeric_limits<int>::max(), "%s is %lld; expected at most %d", name,
                       value, std::numeric_limits<int>::max());
    }
    Call& leading(const char* name, long long value, long long rows) {
        size(name, value);
        return at_least(name, value, std::max(1LL, rows));
    }
    Call& option(const char* name, int value, int least, int most) {
        return require(value >= least && value <= most, "%s is %d; expected %d to %d", name, value, least,
                       most);
    }
    Call& given(const char* name, const void* pointer) {
        return require(pointer != nullptr, "%s is null", name);
    }

    // The memory that the work reads and writes. It is checked when the work runs.
    template <class T>
    Call& matrix(const char* name, const T* pointer, long long rows, long long columns, long long leading,
                 bool written = false) {
        if (ok())
            regions_.push_back({name, pointer, sizeof(T) * positive(rows), positive(columns),
                                sizeof(T) * positive(leading), written});
        return *this;
    }
    template <class T>
    Call& vector(const char* name, const T* pointer, long long n, bool written = false) {
        return matrix(name, pointer, n, 1, n, written);
    }
    Call& info(int* info) { return given("devInfo", info).vector("devInfo", info, 1, true); }
    template <class T>
    Call& workspace(const T* pointer, long long given_size, long long needed) {
        at_least("Lwork", given_size, needed);
        if (given_size > 0) given("Workspace", pointer);
        return vector("Workspace", pointer, given_size);
    }

    bool ok() const { return status_ == CUSOLVER_STATUS_SUCCESS; }
    cusolverStatus_t status() const { return status_; }
    const char* function() const { return function_; }

    template <class WorkOfCall>
    cusolverStatus_t run(WorkOfCall work) {
        if (!ok()) return status_;
        const auto checked = [function = function_, regions = regions_, work = std::move(work)] {
            for (const Region& region : regions) {
                // Reported at the next synchronisation.
                if (!reachable(function, region)) return cudaSuccess;
            }
            const ReadableGuards guards(regions);
            work();
            for (const Region& region : regions) {
                if (region.written) note_written(region);
            }
            return cudaSuccess;
        };
        const cudaError_t error = submit(handle_->stream, function_, checked);
        return error == cudaSuccess ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
    }

  private:
    static std::size_t positive(long long value) { return value > 0 ? static_cast<std::size_t>(value) : 0; }

    cusolverDnHandle_t handle_;
    const char* function_;
    cusolverStatus_t status_ = CUSOLVER_STATUS_SUCCESS;
    std::vector<Region> regions_;
};

cusolverStatus_t size_for(Call& call, long long elements, int* lwork) {
    call.given("Lwork", lwork);
    if (!call.ok()) return call.status();
    *lwork = static_cast<int>(std::min<long long>(elements, std::numeric_limits<int>::max()));
    return CUSOLVER_STATUS_SUCCESS;
}

// The size of a workspace, in elements.
constexpr long long work_size(long long n) {
    return 32 * std::max(1LL, n);
}

// LAPACK returns the size of a workspace as a number of the matrix's type, which may be rounded
// down.
template <class T>
std::size_t size_from(T best) {
    const Real<T> size = std::real(best);
    return 1 + static_cast<std::size_t>(std::nextafter(size, std::numeric_limits<Real<T>>::infinity()));
}

// Calls `function(work, lwork)` twice, as LAPACK requires: the first call returns the size.
template <class T, class Function>
void with_work(Function function) {
    T best{};
    function(&best, -1);
    std::vector<T> work(size_from(best));
    function(work.data(), static_cast<int>(work.size()));
}

char letter(cublasFillMode_t uplo) {
    return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U';
}
char letter(cublasOperation_t trans) {
    return trans == CUBLAS_OP_N ? 'N' : trans == CUBLAS_OP_T ? 'T' : 'C';
}
char letter(cusolverEigMode_t mode) {
    return mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N';
}

// --- LU ------------------------------------------------------------------------------------------

// Without pivoting, which LAPACK does not have. Returns the position of the first zero pivot.
template <class T>
int factorise_in_order(int m, int n, T* A, int lda) {
    int singular = 0;
    const auto at = [=](int row, int column) -> T& {
        return A[row + static_cast<std::size_t>(column) * lda];
    };
    for (int j = 0; j < std::min(m, n); ++j) {
        if (at(j, j) == T{}) {
            if (singular == 0) singular = j + 1;
            continue;
        }
        for (int row = j + 1; row < m; ++row)
            at(row, j) /= at(j, j);
        for (int column = j + 1; column < n; ++column) {
            for (int row = j + 1; row < m; ++row)
                at(row, column) -= at(row, j) * at(j, column);
        }
    }
    return singular;
}

template <class T>
Call& check_matrix(Call& call, long long m, long long n, const T* A, long long lda, bool written) {
    call.size("m", m).size("n", n).leading("lda", lda, m);
    if (written && m > 0 && n > 0) call.given("A", A);
    return call.matrix("A", A, m, n, lda, written);
}

template <class T>
int getrf_of(int m, int n, T* A, int lda, int* ipiv) {
    if (m == 0 || n == 0) return 0;
    if (ipiv == nullptr) return factorise_in_order(m, n, A, lda);
    int info = 0;
    Lapack<T>::getrf(&m, &n, A, &lda, ipiv, &info);
    return info;
}

template <class T>
cusolverStatus_t getrf(Call call, int m, int n, T* A, int lda, T* workspace, int* ipiv, int* info) {
    check_matrix(call, m, n, A, lda, true).info(info);
    call.given("Workspace", workspace).vector("Workspace", workspace, work_size(std::max(m, n)));
    if (ipiv != nullptr) call.vector("devIpiv", ipiv, std::min(m, n), true);
    return call.run([=] { *info = getrf_of(m, n, A, lda, ipiv); });
}

template <class T>
int getrs_of(cublasOperation_t trans, int n, int nrhs, const T* A, int lda, const int* ipiv, T* B, int ldb) {
    if (n == 0 || nrhs == 0) return 0;
    for (int i = 0; ipiv != nullptr && i < n; ++i) {
        if (ipiv[i] > i && ipiv[i] <= n) continue;
        std::fprintf(
            stderr,
            "cuda_on_cpu: getrs: element %d of devIpiv is %d; expected a row from %d to %d, as getrf "
            "numbers them\n",
            i, ipiv[i], i + 1, n);
        return -6;  // the parameter, of those after the handle
    }
    const char op = letter(trans);
    int info = 0;
    if (ipiv != nullptr) {
        Lapack<T>::getrs(&op, &n, &nrhs, A, &lda, ipiv, B, &ldb, &info, 1);
        return info;
    }
    // A zero on the diagonal is divided by, as on a GPU.
    const T one{1};
    const auto triangle = [&](const char* uplo, const char* diagonal) {
        Lapack<T>::trsm("L", uplo, &op, diagonal, &n, &nrhs, &one, A, &lda, B, &ldb, 1, 1, 1, 1);
    };
    if (trans == CUBLAS_OP_N) {
        triangle("L", "U");
        triangle("U", "N");
    } else {
        triangle("U", "N");
        triangle("L", "U");
    }
    return 0;
}

template <class T>
Call& check_system(Call& call, long long n, long long nrhs, const T* A, long long lda, const T* B,
                   long long ldb) {
    call.size("n", n).size("nrhs", nrhs).leading("lda", lda, n).leading("ldb", ldb, n);
    if (n > 0 && nrhs > 0) call.given("A", A).given("B", B);
    return call.matrix("A", A, n, n, lda).matrix("B", B, n, nrhs, ldb, true);
}

template <class T>
cusolverStatus_t getrs(Call call, cublasOperation_t trans, int n, int nrhs, const T* A, int lda,
                       const int* ipiv, T* B, int ldb, int* info) {
    call.option("trans", trans, 0, 2);
    check_system(call, n, nrhs, A, lda, B, ldb).info(info);
    if (ipiv != nullptr) call.vector("devIpiv", ipiv, n);
    return call.run([=] { *info = getrs_of(trans, n, nrhs, A, lda, ipiv, B, ldb); });
}

// --- Cholesky ------------------------------------------------------------------------------------

Call& check_uplo(Call& call, cublasFillMode_t uplo) {
    return call.option("uplo", uplo, CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER);
}

template <class T>
int potrf_of(cublasFillMode_t uplo, int n, T* A, int lda) {
    const char triangle = letter(uplo);
    int info = 0;
    if (n > 0) Lapack<T>::potrf(&triangle, &n, A, &lda, &info, 1);
    return info;
}
template <class T>
int potrs_of(cublasFillMode_t uplo, int n, int nrhs, const T* A, int lda, T* B, int ldb) {
    const char triangle = letter(uplo);
    int info = 0;
    if (n > 0 && nrhs > 0) Lapack<T>::potrs(&triangle, &n, &nrhs, A, &lda, B, &ldb, &info, 1);
    return info;
}

template <class T>
cusolverStatus_t potrf(Call call, cublasFillMode_t uplo, int n, T* A, int lda, T* workspace, int lwork,
                       int* info) {
    check_matrix(check_uplo(call, uplo), n, n, A, lda, true).workspace(workspace, lwork, work_size(n));
    call.info(info);
    return call.run([=] { *info = potrf_of(uplo, n, A, lda); });
}

template <class T>
cusolverStatus_t potri(Call call, cublasFillMode_t uplo, int n, T* A, int lda, T* workspace, int lwork,
                       int* info) {
    check_matrix(check_uplo(call, uplo), n, n, A, lda, true).workspace(workspace, lwork, work_size(n));
    call.info(info);
    return call.run([=] {
        const char triangle = letter(uplo);
        *info = 0;
        if (n > 0) Lapack<T>::potri(&triangle, &n, A, &lda, info, 1);
    });
}

template <class T>
cusolverStatus_t potrs(Call call, cublasFillMode_t uplo, int n, int nrhs, const T* A, int lda, T* B, int ldb,
                       int* info) {
    check_system(check_uplo(call, uplo), n, nrhs, A, lda, B, ldb).info(info);
    return call.run([=] { *info = potrs_of(uplo, n, nrhs, A, lda, B, ldb); });
}

template <class T>
bool can_use(const char* function, const char* name, const T* matrix, int rows, int columns, int leading) {
    if (rows <= 0 || columns <= 0) return true;
    return reachable(function, {name, matrix, sizeof(T) * rows, static_cast<std::size_t>(columns),
                                sizeof(T) * leading, true});
}
template <class T>
void wrote(T* matrix, int rows, int columns, int leading) {
    if (rows <= 0 || columns <= 0) return;
    note_written(
        {"", matrix, sizeof(T) * rows, static_cast<std::size_t>(columns), sizeof(T) * leading, true});
}

template <class T>
cusolverStatus_t potrfBatched(Call call, cublasFillMode_t uplo, int n, T* const A[], int lda, int* info,
                              int batch) {
    check_uplo(call, uplo).size("n", n).leading("lda", lda, n).size("batchSize", batch);
    call.vector("the array of A", A, batch).vector("infoArray", info, batch, true);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            if (!can_use(function, "a matrix of A", A[i], n, n, lda)) return;
            const ReadableGuards guard{A[i]};
            info[i] = potrf_of(uplo, n, A[i], lda);
            wrote(A[i], n, n, lda);
        }
    });
}

template <class T>
cusolverStatus_t potrsBatched(Call call, cublasFillMode_t uplo, int n, int nrhs, T* const A[], int lda,
                              T* const B[], int ldb, int* info, int batch) {
    check_uplo(call, uplo).size("n", n).leading("lda", lda, n).leading("ldb", ldb, n);
    call.size("batchSize", batch).require(nrhs == 1, "nrhs is %d; expected 1, all that it takes", nrhs);
    call.vector("the array of A", A, batch).vector("the array of B", B, batch).info(info);
    return call.run([=, function = call.function()] {
        *info = 0;
        for (int i = 0; i < batch; ++i) {
            if (!can_use(function, "a matrix of A", A[i], n, n, lda) ||
                !can_use(function, "a matrix of B", B[i], n, nrhs, ldb))
                return;
            const ReadableGuards guard{A[i], B[i]};
            potrs_of(uplo, n, nrhs, A[i], lda, B[i], ldb);
            wrote(B[i], n, nrhs, ldb);
        }
    });
}

// --- QR ------------------------------------------------------------------------------------------

template <class T>
int geqrf_of(int m, int n, T* A, int lda, T* tau) {
    int info = 0;
    if (m > 0 && n > 0)
        with_work<T>(
            [&](T* work, int lwork) { Lapack<T>::geqrf(&m, &n, A, &lda, tau, work, &lwork, &info); });
    return info;
}

template <class T>
cusolverStatus_t geqrf(Call call, int m, int n, T* A, int lda, T* tau, T* workspace, int lwork, int* info) {
    check_matrix(call, m, n, A, lda, true).vector("TAU", tau, std::min(m, n), true);
    call.workspace(workspace, lwork, work_size(n)).info(info);
    return call.run([=] { *info = geqrf_of(m, n, A, lda, tau); });
}

template <class T>
Call& check_mqr(Call& call, cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k, int lda,
                int ldc) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    call.option("side", side, 0, 1).option("trans", trans, 0, 2);
    if (kComplex<T>)
        call.require(trans != CUBLAS_OP_T, "trans is CUBLAS_OP_T; expected CUBLAS_OP_N or CUBLAS_OP_C");
    call.size("m", m).size("n", n).size("k", k);
    call.require(k <= order, "k is %d; expected at most %s, %d", k, side == CUBLAS_SIDE_LEFT ? "m" : "n",
                 order);
    return call.leading("lda", lda, order).leading("ldc", ldc, m);
}
template <class T>
cusolverStatus_t mqr(Call call, cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k,
                     const T* A, int lda, const T* tau, T* C, int ldc, T* workspace, int lwork, int* info) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    check_mqr<T>(call, side, trans, m, n, k, lda, ldc).matrix("A", A, order, k, lda);
    call.vector("tau", tau, k).matrix("C", C, m, n, ldc, true);
    call.workspace(workspace, lwork, work_size(std::max(m, n))).info(info);
    return call.run([=] {
        *info = 0;
        if (m == 0 || n == 0 || k == 0) return;
        const char at = side == CUBLAS_SIDE_LEFT ? 'L' : 'R';
        const char op = trans == CUBLAS_OP_N ? 'N' : kComplex<T> ? 'C' : 'T';
        with_work<T>([&](T* work, int size) {
            Lapack<T>::mqr(&at, &op, &m, &n, &k, A, &lda, tau, C, &ldc, work, &size, info, 1, 1);
        });
    });
}

Call& check_gqr(Call& call, int m, int n, int k, int lda) {
    call.size("m", m).size("n", n).size("k", k).leading("lda", lda, m);
    return call.require(n <= m, "n is %d; expected at most m, %d", n, m)
        .require(k <= n, "k is %d; expected at most n, %d", k, n);
}
template <class T>
cusolverStatus_t gqr(Call call, int m, int n, int k, T* A, int lda, const T* tau, T* workspace, int lwork,
                     int* info) {
    check_gqr(call, m, n, k, lda).matrix("A", A, m, n, lda, true).vector("tau", tau, k);
    call.workspace(workspace, lwork, work_size(n)).info(info);
    return call.run([=] {
        *info = 0;
        if (n == 0) return;
        with_work<T>([&](T* work, int size) { Lapack<T>::gqr(&m, &n, &k, A, &lda, tau, work, &size, info); });
    });
}

// --- Eigenvalues and singular values -------------------------------------------------------------

// `call(work, lwork, rwork, lrwork, iwork, liwork)`, without rwork for real types.
template <class T, class Function>
void with_three(Function function) {
    T best{};
    Real<T> best_real{};
    int best_integers = 0;
    function(&best, -1, &best_real, -1, &best_integers, -1);
    std::vector<T> work(size_from(best));
    std::vector<Real<T>> reals(size_from(best_real));
    std::vector<int> integers(std::max(1, best_integers));
    function(work.data(), static_cast<int>(work.size()), reals.data(), static_cast<int>(reals.size()),
             integers.data(), static_cast<int>(integers.size()));
}

template <class T>
int evd_of(cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T* A, int lda, Real<T>* W) {
    const char mode = letter(jobz);
    const char triangle = letter(uplo);
    int info = 0;
    if (n == 0) return 0;
    with_three<T>([&](T* work, int lwork, [[maybe_unused]] Real<T>* rwork, [[maybe_unused]] int lrwork,
                      int* iwork, int liwork) {
        if constexpr (kComplex<T>) {
            Lapack<T>::evd(&mode, &triangle, &n, A, &lda, W, work, &lwork, rwork, &lrwork, iwork, &liwork,
                           &info, 1, 1);
        } else {
            Lapack<T>::evd(&mode, &triangle, &n, A, &lda, W, work, &lwork, iwork, &liwork, &info, 1, 1);
        }
    });
    return info;
}

template <class T>
Call& check_evd(Call& call, cusolverEigMode_t jobz, cublasFillMode_t uplo, long long n, const T* A,
                long long lda, const Real<T>* W, bool sizes_only = false) {
    call.option("jobz", jobz, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR);
    check_matrix(check_uplo(call, uplo), n, n, A, lda, !sizes_only);
    if (n > 0 && !sizes_only) call.given("W", W);
    return call.vector("W", W, n, true);
}
template <class T>
cusolverStatus_t evd(Call call, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T* A, int lda,
                     Real<T>* W, T* workspace, int lwork, int* info) {
    check_evd(call, jobz, uplo, n, A, lda, W).workspace(workspace, lwork, work_size(n)).info(info);
    return call.run([=] { *info = evd_of(jobz, uplo, n, A, lda, W); });
}

template <class T>
Call& check_gvd(Call& call, cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,
                const T* A, int lda, const T* B, int ldb, const Real<T>* W, bool sizes_only = false) {
    call.option("itype", type, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_TYPE_3);
    check_evd(call, jobz, uplo, n, A, lda, W, sizes_only).leading("ldb", ldb, n);
    if (n > 0 && !sizes_only) call.given("B", B);
    return call.matrix("B", B, n, n, ldb, true);
}
template <class T>
cusolverStatus_t gvd(Call call, cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,
                     T* A, int lda, T* B, int ldb, Real<T>* W, T* workspace, int lwork, int* info) {
    check_gvd(call, type, jobz, uplo, n, A, lda, B, ldb, W)
        .workspace(workspace, lwork, work_size(n))
        .info(info);
    return call.run([=] {
        const char mode = letter(jobz);
        const char triangle = letter(uplo);
        const int kind = type;
        *info = 0;
        if (n == 0) return;
        with_three<T>([&](T* work, int size, [[maybe_unused]] Real<T>* rwork, [[maybe_unused]] int lrwork,
                          int* iwork, int liwork) {
            if constexpr (kComplex<T>) {
                Lapack<T>::gvd(&kind, &mode, &triangle, &n, A, &lda, B, &ldb, W, work, &size, rwork, &lrwork,
                               iwork, &liwork, info, 1, 1);
            } else {
                Lapack<T>::gvd(&kind, &mode, &triangle, &n, A, &lda, B, &ldb, W, work, &size, iwork, &liwork,
                               info, 1, 1);
            }
        });
    });
}

template <class T>
cusolverStatus_t gesvd(Call call, signed char jobu, signed char jobvt, int m, int n, T* A, int lda,
                       Real<T>* S, T* U, int ldu, T* VT, int ldvt, T* workspace, int lwork, int* info) {
    const auto check_job = [&call](const char* name, char job) {
        call.require(job == 'A' || job == 'S' || job == 'O' || job == 'N',
                     "%s is '%c'; expected 'A', 'S', 'O' or 'N'", name, job);
    };
    check_job("jobu", static_cast<char>(jobu));
    check_job("jobvt", static_cast<char>(jobvt));
    call.require(jobu != 'O' || jobvt != 'O', "jobu and jobvt are both 'O'; expected one of them at most");
    check_matrix(call, m, n, A, lda, true);
    call.require(m >= n,
                 "m is %d; expected at least n, %d: cuSOLVER takes matrices that are not wider than "
                 "high",
                 m, n);
    const bool has_u = jobu == 'A' || jobu == 'S';
    const bool has_vt = jobvt == 'A' || jobvt == 'S';
    call.leading("ldu", ldu, has_u ? m : 1).leading("ldvt", ldvt, has_vt ? n : 1);
    call.vector("S", S, n, true);
    if (has_u) call.matrix("U", U, m, jobu == 'A' ? m : n, ldu, true);
    if (has_vt) call.matrix("VT", VT, n, n, ldvt, true);
    call.workspace(workspace, lwork, work_size(std::max(m, n))).info(info);
    return call.run([=] {
        *info = 0;
        if (n == 0) return;
        const char u = static_cast<char>(jobu);
        const char vt = static_cast<char>(jobvt);
        with_work<T>([&](T* work, int size) {
            if constexpr (kComplex<T>) {
                std::vector<Real<T>> reals(5 * static_cast<std::size_t>(n));
                Lapack<T>::gesvd(&u, &vt, &m, &n, A, &lda, S, U, &ldu, VT, &ldvt, work, &size, reals.data(),
                                 info, 1, 1);
            } else {
                Lapack<T>::gesvd(&u, &vt, &m, &n, A, &lda, S, U, &ldu, VT, &ldvt, work, &size, info, 1, 1);
            }
        });
    });
}

// --- The types of C ------------------------------------------------------------------------------

template <class T>
auto* own(T* pointer) {
    return pointer;
}
inline auto* own(cuComplex* pointer) {
    return reinterpret_cast<std::complex<float>*>(pointer);
}
inline auto* own(const cuComplex* pointer) {
    return reinterpret_cast<const std::complex<float>*>(pointer);
}
inline auto* own(cuDoubleComplex* pointer) {
    return reinterpret_cast<std::complex<double>*>(pointer);
}
inline auto* own(const cuDoubleComplex* pointer) {
    return reinterpret_cast<const std::complex<double>*>(pointer);
}
inline auto* own(cuComplex** pointers) {
    return reinterpret_cast<std::complex<float>**>(pointers);
}
inline auto* own(cuDoubleComplex** pointers) {
    return reinterpret_cast<std::complex<double>**>(pointers);
}

// Calls `work` with a value of the C++ type that corresponds to `type`.
template <class Work>
cusolverStatus_t with_type(Call& call, const char* name, cudaDataType type, Work work) {
    if (call.ok() && type == CUDA_R_32F) return work(float{});
    if (call.ok() && type == CUDA_R_64F) return work(double{});
    if (call.ok() && type == CUDA_C_32F) return work(std::complex<float>{});
    if (call.ok() && type == CUDA_C_64F) return work(std::complex<double>{});
    call.require(false, "%s is %d; expected CUDA_R_32F, CUDA_R_64F, CUDA_C_32F or CUDA_C_64F", name, type);
    return call.status();
}
cudaDataType real_of(cudaDataType type) {
    return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}
void same_type(Call& call, const char* name, cudaDataType type, cudaDataType expected) {
    call.require(type == expected, "%s is %d; expected %d, the type of A", name, type, expected);
}
cusolverStatus_t bytes_for(Call& call, cudaDataType type, long long n, size_t* device, size_t* host) {
    call.given("workspaceInBytesOnDevice", device).given("workspaceInBytesOnHost", host);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        *device = sizeof one * static_cast<std::size_t>(work_size(n));
        *host = 0;
        return CUSOLVER_STATUS_SUCCESS;
    });
}
void check_buffer(Call& call, cudaDataType type, long long n, const void* buffer, size_t bytes) {
    size_t needed = 0;
    size_t host = 0;
    if (!call.ok() || bytes_for(call, type, n, &needed, &host) != CUSOLVER_STATUS_SUCCESS) return;
    call.at_least("workspaceInBytesOnDevice", static_cast<long long>(bytes), static_cast<long long>(needed));
    call.given("bufferOnDevice", buffer);
    call.vector("bufferOnDevice", static_cast<const char*>(buffer), static_cast<long long>(bytes));
}

}  // namespace
}  // namespace cuda_on_cpu::solver

using namespace cuda_on_cpu::solver;

cusolverStatus_t cusolverGetVersion(int* version) {
    if (version == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *version = CUSOLVER_VERSION;
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CUSOLVER_STATUS_INVALID_VALUE;
    constexpr int kVersion[] = {CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH};
    *value = kVersion[type];
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
    if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *handle = new cusolverDnContext;
    const std::scoped_lock lock(mutex);
    handles().insert(*handle);
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
    if (Call call(handle, __func__); !call.ok()) return call.status();
    const std::scoped_lock lock(mutex);
    handles().erase(handle);
    delete handle;
    return CUSOLVER_STATUS_SUCCESS;
}
#define CUSOLVER_SETTING(Name, Type, field)                                        \
    cusolverStatus_t cusolverDnSet##Name(cusolverDnHandle_t handle, Type value) {  \
        if (Call call(handle, __func__); !call.ok()) return call.status();         \
        handle->field = value;                                                     \
        return CUSOLVER_STATUS_SUCCESS;                                            \
    }                                                                              \
    cusolverStatus_t cusolverDnGet##Name(cusolverDnHandle_t handle, Type* value) { \
        Call call(handle, __func__);                                               \
        call.given("the value to set", value);                                     \
        if (call.ok()) *value = handle->field;                                     \
        return call.status();                                                      \
    }
CUSOLVER_SETTING(Stream, cudaStream_t, stream)
CUSOLVER_SETTING(DeterministicMode, cusolverDeterministicMode_t, mode)
#undef CUSOLVER_SETTING

#define CUSOLVER_FUNCTIONS(S, T, R)                                                                          \
    cusolverStatus_t cusolverDn##S##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T* A, int lda, \
                                                     int* lwork) {                                           \
        Call call(handle, __func__);                                                                         \
        check_matrix(call, m, n, own(A), lda, false);                                                        \
        return size_for(call, work_size(std::max(m, n)), lwork);                                             \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t handle, int m, int n, T* A, int lda,            \
                                          T* workspace, int* ipiv, int* info) {                              \
        return getrf({handle, __func__}, m, n, own(A), lda, own(workspace), ipiv, info);                     \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t handle, cublasOperation_t trans, int n,         \
                                          int nrhs, const T* A, int lda, const int* ipiv, T* B, int ldb,     \
                                          int* info) {                                                       \
        return getrs({handle, __func__}, trans, n, nrhs, own(A), lda, ipiv, own(B), ldb, info);              \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo,       \
                                                     int n, T* A, int lda, int* lwork) {                     \
        Call call(handle, __func__);                                                                         \
        check_matrix(check_uplo(call, uplo), n, n, own(A), lda, false);                                      \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T* A,     \
                                          int lda, T* workspace, int lwork, int* info) {                     \
        return potrf({handle, __func__}, uplo, n, own(A), lda, own(workspace), lwork, info);                 \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo,       \
                                                     int n, T* A, int lda, int* lwork) {                     \
        Call call(handle, __func__);                                                                         \
        check_matrix(check_uplo(call, uplo), n, n, own(A), lda, false);                                      \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potri(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T* A,     \
                                          int lda, T* workspace, int lwork, int* info) {                     \
        return potri({handle, __func__}, uplo, n, own(A), lda, own(workspace), lwork, info);                 \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, \
                                          const T* A, int lda, T* B, int ldb, int* info) {                   \
        return potrs({handle, __func__}, uplo, n, nrhs, own(A), lda, own(B), ldb, info);                     \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,    \
                                                 T* A[], int lda, int* info, int batch) {                    \
        return potrfBatched({handle, __func__}, uplo, n, own(A), lda, info, batch);                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##potrsBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,    \
                                                 int nrhs, T* A[], int lda, T* B[], int ldb, int* info,      \
                                                 int batch) {                                                \
        return potrsBatched({handle, __func__}, uplo, n, nrhs, own(A), lda, own(B), ldb, info, batch);       \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T* A, int lda, \
                                                     int* lwork) {                                           \
        Call call(handle, __func__);                                                                         \
        check_matrix(call, m, n, own(A), lda, false);                                                        \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t handle, int m, int n, T* A, int lda, T* tau,    \
                                          T* workspace, int lwork, int* info) {                              \
        return geqrf({handle, __func__}, m, n, own(A), lda, own(tau), own(workspace), lwork, info);          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, int* lwork) {  \
        Call call(handle, __func__);                                                                         \
        call.size("m", m).size("n", n);                                                                      \
        return size_for(call, work_size(std::max(m, n)), lwork);                                             \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##S##gesvd(cusolverDnHandle_t handle, signed char jobu, signed char jobvt,    \
                                          int m, int n, T* A, int lda, R* singular, T* U, int ldu, T* VT,    \
                                          int ldvt, T* workspace, int lwork, R*, int* info) {                \
        return gesvd({handle, __func__}, jobu, jobvt, m, n, own(A), lda, singular, own(U), ldu, own(VT),     \
                     ldvt, own(workspace), lwork, info);                                                     \
    }
CUSOLVER_FUNCTIONS(S, float, float)
CUSOLVER_FUNCTIONS(D, double, double)
CUSOLVER_FUNCTIONS(C, cuComplex, float)
CUSOLVER_FUNCTIONS(Z, cuDoubleComplex, double)
#undef CUSOLVER_FUNCTIONS

#define CUSOLVER_FUNCTIONS(Q, E, T, R)                                                                       \
    cusolverStatus_t cusolverDn##Q##mqr_bufferSize(cusolverDnHandle_t handle, cublasSideMode_t side,         \
                                                   cublasOperation_t trans, int m, int n, int k, const T* A, \
                                                   int lda, const T*, const T*, int ldc, int* lwork) {       \
        Call call(handle, __func__);                                                                         \
        check_mqr<std::remove_const_t<std::remove_pointer_t<decltype(own(A))>>>(call, side, trans, m, n, k,  \
                                                                                lda, ldc);                   \
        return size_for(call, work_size(std::max(m, n)), lwork);                                             \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##Q##mqr(cusolverDnHandle_t handle, cublasSideMode_t side,                    \
                                        cublasOperation_t trans, int m, int n, int k, const T* A, int lda,   \
                                        const T* tau, T* C, int ldc, T* workspace, int lwork, int* info) {   \
        return mqr({handle, __func__}, side, trans, m, n, k, own(A), lda, own(tau), own(C), ldc,             \
                   own(workspace), lwork, info);                                                             \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##Q##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k, const T*, \
                                                   int lda, const T*, int* lwork) {                          \
        Call call(handle, __func__);                                                                         \
        check_gqr(call, m, n, k, lda);                                                                       \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##Q##gqr(cusolverDnHandle_t handle, int m, int n, int k, T* A, int lda,       \
                                        const T* tau, T* workspace, int lwork, int* info) {                  \
        return gqr({handle, __func__}, m, n, k, own(A), lda, own(tau), own(workspace), lwork, info);         \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##E##evd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t jobz,        \
                                                   cublasFillMode_t uplo, int n, const T* A, int lda,        \
                                                   const R* W, int* lwork) {                                 \
        Call call(handle, __func__);                                                                         \
        check_evd(call, jobz, uplo, n, own(A), lda, W, true);                                                \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##E##evd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,                   \
                                        cublasFillMode_t uplo, int n, T* A, int lda, R* W, T* workspace,     \
                                        int lwork, int* info) {                                              \
        return evd({handle, __func__}, jobz, uplo, n, own(A), lda, W, own(workspace), lwork, info);          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##E##gvd_bufferSize(                                                          \
        cusolverDnHandle_t handle, cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo,    \
        int n, const T* A, int lda, const T* B, int ldb, const R* W, int* lwork) {                           \
        Call call(handle, __func__);                                                                         \
        check_gvd(call, type, jobz, uplo, n, own(A), lda, own(B), ldb, W, true);                             \
        return size_for(call, work_size(n), lwork);                                                          \
    }                                                                                                        \
    cusolverStatus_t cusolverDn##E##gvd(cusolverDnHandle_t handle, cusolverEigType_t type,                   \
                                        cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T* A, int lda, \
                                        T* B, int ldb, R* W, T* workspace, int lwork, int* info) {           \
        return gvd({handle, __func__}, type, jobz, uplo, n, own(A), lda, own(B), ldb, W, own(workspace),     \
                   lwork, info);                                                                             \
    }
CUSOLVER_FUNCTIONS(Sor, Ssy, float, float)
CUSOLVER_FUNCTIONS(Dor, Dsy, double, double)
CUSOLVER_FUNCTIONS(Cun, Che, cuComplex, float)
CUSOLVER_FUNCTIONS(Zun, Zhe, cuDoubleComplex, double)
#undef CUSOLVER_FUNCTIONS

// --- 64-bit sizes --------------------------------------------------------------------------------

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params) {
    if (params == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *params = new cusolverDnParams;
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
    delete params;
    return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t, cusolverAlgMode_t) {
    return params == nullptr ? CUSOLVER_STATUS_INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m,
                                             int64_t n, cudaDataType type, const void*, int64_t lda,
                                             cudaDataType compute, size_t* device_bytes, size_t* host_bytes) {
    Call call(handle, __func__);
    call.size("m", m).size("n", n).leading("lda", lda, m);
    same_type(call, "computeType", compute, type);
    return bytes_for(call, type, std::max(m, n), device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* A, int64_t lda, int64_t* ipiv,
                                  cudaDataType compute, void* device_buffer, size_t device_bytes, void*,
                                  size_t, int* info) {
    Call call(handle, __func__);
    same_type(call, "computeType", compute, type);
    check_buffer(call, type, std::max(m, n), device_buffer, device_bytes);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<decltype(one)*>(A);
        check_matrix(call, m, n, a, lda, true).info(info);
        if (ipiv != nullptr) call.vector("ipiv", ipiv, std::min(m, n), true);
        return call.run([=] {
            std::vector<int> pivots(static_cast<std::size_t>(std::min(m, n)));
            *info = getrf_of(static_cast<int>(m), static_cast<int>(n), a, static_cast<int>(lda),
                             ipiv == nullptr ? nullptr : pivots.data());
            if (ipiv != nullptr) std::copy(pivots.begin(), pivots.end(), ipiv);
        });
    });
}
cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasOperation_t trans,
                                  int64_t n, int64_t nrhs, cudaDataType type, const void* A, int64_t lda,
                                  const int64_t* ipiv, cudaDataType type_of_b, void* B, int64_t ldb,
                                  int* info) {
    Call call(handle, __func__);
    same_type(call.option("trans", trans, 0, 2), "dataTypeB", type_of_b, type);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<const decltype(one)*>(A);
        auto* const b = static_cast<decltype(one)*>(B);
        check_system<decltype(one)>(call, n, nrhs, a, lda, b, ldb).info(info);
        if (ipiv != nullptr) call.vector("ipiv", ipiv, n);
        return call.run([=] {
            std::vector<int> pivots;
            if (ipiv != nullptr) pivots.assign(ipiv, ipiv + n);
            *info = getrs_of(trans, static_cast<int>(n), static_cast<int>(nrhs), a, static_cast<int>(lda),
                             ipiv == nullptr ? nullptr : pivots.data(), b, static_cast<int>(ldb));
        });
    });
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                             cublasFillMode_t uplo, int64_t n, cudaDataType type, const void*,
                                             int64_t lda, cudaDataType compute, size_t* device_bytes,
                                             size_t* host_bytes) {
    Call call(handle, __func__);
    check_uplo(call, uplo).size("n", n).leading("lda", lda, n);
    same_type(call, "computeType", compute, type);
    return bytes_for(call, type, n, device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t uplo,
                                  int64_t n, cudaDataType type, void* A, int64_t lda, cudaDataType compute,
                                  void* device_buffer, size_t device_bytes, void*, size_t, int* info) {
    Call call(handle, __func__);
    same_type(check_uplo(call, uplo), "computeType", compute, type);
    check_buffer(call, type, n, device_buffer, device_bytes);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<decltype(one)*>(A);
        check_matrix(call, n, n, a, lda, true).info(info);
        return call.run([=] { *info = potrf_of(uplo, static_cast<int>(n), a, static_cast<int>(lda)); });
    });
}
cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t uplo,
                                  int64_t n, int64_t nrhs, cudaDataType type, const void* A, int64_t lda,
                                  cudaDataType type_of_b, void* B, int64_t ldb, int* info) {
    Call call(handle, __func__);
    same_type(check_uplo(call, uplo), "dataTypeB", type_of_b, type);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<const decltype(one)*>(A);
        auto* const b = static_cast<decltype(one)*>(B);
        check_system<decltype(one)>(call, n, nrhs, a, lda, b, ldb).info(info);
        return call.run([=] {
            *info = potrs_of(uplo, static_cast<int>(n), static_cast<int>(nrhs), a, static_cast<int>(lda), b,
                             static_cast<int>(ldb));
        });
    });
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m,
                                             int64_t n, cudaDataType type, const void*, int64_t lda,
                                             cudaDataType type_of_tau, const void*, cudaDataType compute,
                                             size_t* device_bytes, size_t* host_bytes) {
    Call call(handle, __func__);
    call.size("m", m).size("n", n).leading("lda", lda, m);
    same_type(call, "computeType", compute, type);
    same_type(call, "dataTypeTau", type_of_tau, type);
    return bytes_for(call, type, n, device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* A, int64_t lda, cudaDataType type_of_tau,
                                  void* tau, cudaDataType compute, void* device_buffer, size_t device_bytes,
                                  void*, size_t, int* info) {
    Call call(handle, __func__);
    same_type(call, "computeType", compute, type);
    same_type(call, "dataTypeTau", type_of_tau, type);
    check_buffer(call, type, n, device_buffer, device_bytes);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<decltype(one)*>(A);
        auto* const factors = static_cast<decltype(one)*>(tau);
        check_matrix(call, m, n, a, lda, true).vector("tau", factors, std::min(m, n), true).info(info);
        return call.run([=] {
            *info = geqrf_of(static_cast<int>(m), static_cast<int>(n), a, static_cast<int>(lda), factors);
        });
    });
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                             cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                             cudaDataType type, const void*, int64_t lda,
                                             cudaDataType type_of_w, const void*, cudaDataType compute,
                                             size_t* device_bytes, size_t* host_bytes) {
    Call call(handle, __func__);
    call.option("jobz", jobz, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR);
    check_uplo(call, uplo).size("n", n).leading("lda", lda, n);
    same_type(call, "computeType", compute, type);
    same_type(call, "dataTypeW", type_of_w, real_of(type));
    return bytes_for(call, type, n, device_bytes, host_bytes);
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t jobz,
                                  cublasFillMode_t uplo, int64_t n, cudaDataType type, void* A, int64_t lda,
                                  cudaDataType type_of_w, void* W, cudaDataType compute, void* device_buffer,
                                  size_t device_bytes, void*, size_t, int* info) {
    Call call(handle, __func__);
    same_type(call, "computeType", compute, type);
    same_type(call, "dataTypeW", type_of_w, real_of(type));
    check_buffer(call, type, n, device_buffer, device_bytes);
    return with_type(call, "dataTypeA", type, [&](auto one) {
        auto* const a = static_cast<decltype(one)*>(A);
        auto* const values = static_cast<Real<decltype(one)>*>(W);
        check_evd(call, jobz, uplo, n, a, lda, values).info(info);
        return call.run(
            [=] { *info = evd_of(jobz, uplo, static_cast<int>(n), a, static_cast<int>(lda), values); });
    });
}
