#include "products.hpp"

#include <array>
#include <cstring>

#include "level3.hpp"

namespace cuda_on_cpu::blas {

// The type of alpha and beta for a compute type; the type of C determines whether it is complex.
cudaDataType scale_type(cublasComputeType_t compute, cudaDataType c) {
    switch (compute) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC:
            return CUDA_R_16F;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC:
            return CUDA_R_32I;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
            return is_complex(c) ? CUDA_C_64F : CUDA_R_64F;
        default:
            return is_complex(c) ? CUDA_C_32F : CUDA_R_32F;
    }
}

namespace {

// Groups of compute types that support the same matrix types.
enum class Family { half, single, fast_single, real_double, integer, unknown };

Family family(cublasComputeType_t compute) {
    switch (compute) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC:
            return Family::half;
        case CUBLAS_COMPUTE_32F:
        case CUBLAS_COMPUTE_32F_PEDANTIC:
            return Family::single;
        case CUBLAS_COMPUTE_32F_FAST_16F:
        case CUBLAS_COMPUTE_32F_FAST_16BF:
        case CUBLAS_COMPUTE_32F_FAST_TF32:
            return Family::fast_single;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
            return Family::real_double;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC:
            return Family::integer;
        default:
            return Family::unknown;
    }
}

// Computes with elements, alpha and beta of type T.
template <class T>
void compute_with(const Product& p, T alpha, T beta) {
    const auto unpack = [](const Operand& operand, Shape shape) {
        std::vector<T> dense(static_cast<std::size_t>(shape.rows) * shape.columns);
        for (int column = 0; column < shape.columns; ++column) {
            for (int row = 0; row < shape.rows; ++row)
                dense[row + static_cast<std::size_t>(column) * shape.rows] = load<T>(
                    operand.type, operand.pointer, row + static_cast<std::size_t>(column) * operand.leading);
        }
        return dense;
    };
    const Shape a = stored(p.transa, p.m, p.k), b = stored(p.transb, p.k, p.n);
    std::vector<T> sums(static_cast<std::size_t>(p.m) * p.n);
    if (alpha != T{}) {
        const std::vector<T> A = unpack(p.a, a), B = unpack(p.b, b);
        multiply(p.transa, p.transb, p.m, p.n, p.k, T{1}, A.data(), std::max(1, a.rows), B.data(),
                 std::max(1, b.rows), T{}, sums.data(), p.m);
    }
    void* C = const_cast<void*>(p.c.pointer);
    for (int column = 0; column < p.n; ++column) {
        for (int row = 0; row < p.m; ++row) {
            const std::size_t at = row + static_cast<std::size_t>(column) * p.c.leading;
            T result = alpha * sums[row + static_cast<std::size_t>(column) * p.m];
            if (beta != T{}) result += beta * load<T>(p.c.type, C, at);
            store(p.c.type, C, at, result);
        }
    }
}

// float and double need no conversion.
template <class T>
void compute_in_place(const Product& p, T alpha, T beta) {
    multiply(p.transa, p.transb, p.m, p.n, p.k, alpha, static_cast<const T*>(p.a.pointer), p.a.leading,
             static_cast<const T*>(p.b.pointer), p.b.leading, beta,
             static_cast<T*>(const_cast<void*>(p.c.pointer)), p.c.leading);
}

Region region(const char* name, const Operand& operand, Shape shape) {
    const std::size_t size = size_of(operand.type);
    if (shape.rows <= 0 || shape.columns <= 0) return {name, operand.pointer, 0};
    return {name, operand.pointer, size * shape.rows, static_cast<std::size_t>(shape.columns),
            size * operand.leading};
}

}  // namespace

bool is_supported(const Product& p) {
    if (p.a.type != p.b.type &&
        !(size_of(p.a.type) == 1 && size_of(p.b.type) == 1 && p.a.type != CUDA_R_8I && p.b.type != CUDA_R_8I))
        return false;
    const auto are = [&](cudaDataType factors, cudaDataType result) {
        return p.a.type == factors && p.c.type == result;
    };
    switch (family(p.compute)) {
        case Family::half:
            return are(CUDA_R_16F, CUDA_R_16F);
        case Family::integer:
            return are(CUDA_R_8I, CUDA_R_32I) || (are(CUDA_R_8I, CUDA_R_8I) && p.scale == CUDA_R_32F);
        case Family::real_double:
            return are(CUDA_R_64F, CUDA_R_64F) || are(CUDA_C_64F, CUDA_C_64F);
        case Family::fast_single:
            return are(CUDA_R_32F, CUDA_R_32F) || are(CUDA_C_32F, CUDA_C_32F);
        case Family::single:
            if (p.a.type == CUDA_R_8F_E4M3 || p.a.type == CUDA_R_8F_E5M2)
                return p.c.type == CUDA_R_16F || p.c.type == CUDA_R_16BF || p.c.type == CUDA_R_32F ||
                       size_of(p.c.type) == 1;
            return are(CUDA_R_16BF, CUDA_R_16BF) || are(CUDA_R_16F, CUDA_R_16F) ||
                   are(CUDA_R_8I, CUDA_R_32F) || are(CUDA_R_16BF, CUDA_R_32F) ||
                   are(CUDA_R_16F, CUDA_R_32F) || are(CUDA_R_32F, CUDA_R_32F) || are(CUDA_C_8I, CUDA_C_32F) ||
                   are(CUDA_C_32F, CUDA_C_32F);
        case Family::unknown:
            return false;
    }
    return false;
}

bool compute(const char* function, const Product& p, const void* alpha, const void* beta) {
    if (p.m == 0 || p.n == 0) return true;
    const Region c = region("C", p.c, {p.m, p.n});
    if (!reachable(function, region("A", p.a, stored(p.transa, p.m, p.k))) ||
        !reachable(function, region("B", p.b, stored(p.transb, p.k, p.n))) || !reachable(function, c))
        return false;
    const bool same = p.a.type == p.b.type && p.a.type == p.c.type;
    switch (p.scale) {
        case CUDA_R_64F:
            compute_in_place(p, load<double>(p.scale, alpha, 0), load<double>(p.scale, beta, 0));
            break;
        case CUDA_C_64F:
            compute_in_place(p, load<std::complex<double>>(p.scale, alpha, 0),
                             load<std::complex<double>>(p.scale, beta, 0));
            break;
        case CUDA_C_32F: {
            const auto a = load<std::complex<float>>(p.scale, alpha, 0),
                       b = load<std::complex<float>>(p.scale, beta, 0);
            same ? compute_in_place(p, a, b) : compute_with(p, a, b);
            break;
        }
        default: {
            // Sums of integers are exact in double.
            const bool integers = p.a.type == CUDA_R_8I;
            if (integers) {
                compute_with(p, load<double>(p.scale, alpha, 0), load<double>(p.scale, beta, 0));
            } else if (same && p.a.type == CUDA_R_32F) {
                compute_in_place(p, load<float>(p.scale, alpha, 0), load<float>(p.scale, beta, 0));
            } else {
                compute_with(p, load<float>(p.scale, alpha, 0), load<float>(p.scale, beta, 0));
            }
        }
    }
    note_written(c);
    return true;
}

namespace {

// alpha and beta: copied as bytes in host mode, read when the work runs in device mode.
struct Factors {
    bool on_device;
    const void* alpha_d;
    const void* beta_d;
    alignas(16) std::array<char, 16> alpha_h, beta_h;
    const void* alpha() const { return on_device ? alpha_d : alpha_h.data(); }
    const void* beta() const { return on_device ? beta_d : beta_h.data(); }
};

Factors factors(Call& call, const Product& product, const void* alpha, const void* beta) {
    Factors all{};
    call.given("alpha", alpha).given("beta", beta);
    if (!call.ok()) return all;
    all.on_device = call.on_device();
    all.alpha_d = alpha;
    all.beta_d = beta;
    const std::size_t size = size_of(product.scale);
    const Shape shape{static_cast<int>(size), 1};
    if (all.on_device) {
        call.reads("alpha", static_cast<const char*>(alpha), shape, shape.rows);
        call.reads("beta", static_cast<const char*>(beta), shape, shape.rows);
    } else {
        call.expect_host("alpha", alpha).expect_host("beta", beta);
        if (!call.ok()) return all;
        std::memcpy(all.alpha_h.data(), alpha, size);
        std::memcpy(all.beta_h.data(), beta, size);
    }
    return all;
}

void check(Call& call, const Product& p) {
    check_product(call, p.transa, p.transb, p.m, p.n, p.k, p.a.leading, p.b.leading, p.c.leading);
    call.require(is_supported(p), CUBLAS_STATUS_NOT_SUPPORTED,
                 "the types of A, B and C do not go together with this compute type; see cuBLAS's table for "
                 "cublasGemmEx");
}

Operand moved(Operand operand, long long elements) {
    operand.pointer =
        static_cast<const char*>(operand.pointer) + elements * static_cast<long long>(size_of(operand.type));
    return operand;
}

cublasStatus_t multiply_strided(Call call, Product product, long long stride_a, long long stride_b,
                                long long stride_c, int batch, const void* alpha, const void* beta) {
    check(call, product);
    call.size("batch", batch);
    const Factors scalars = factors(call, product, alpha, beta);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            Product one = product;
            one.a = moved(product.a, i * stride_a);
            one.b = moved(product.b, i * stride_b);
            one.c = moved(product.c, i * stride_c);
            if (!compute(function, one, scalars.alpha(), scalars.beta())) return false;
        }
        return true;
    });
}

cublasStatus_t multiply_batch(Call call, Product product, const void* const A[], const void* const B[],
                              void* const C[], int batch, const void* alpha, const void* beta) {
    check(call, product);
    call.size("batch", batch);
    const Factors scalars = factors(call, product, alpha, beta);
    call.reads("the array of A", A, batch, 1)
        .reads("the array of B", B, batch, 1)
        .reads("the array of C", C, batch, 1);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            Product one = product;
            one.a.pointer = A[i];
            one.b.pointer = B[i];
            one.c.pointer = C[i];
            if (!compute(function, one, scalars.alpha(), scalars.beta())) return false;
        }
        return true;
    });
}

// The operations and extents of the functions below.
struct Form {
    cublasOperation_t transa, transb;
    int m, n, k;
};

Product make_product(const Form& f, Operand a, Operand b, Operand c, cublasComputeType_t compute) {
    return {f.transa, f.transb, f.m, f.n, f.k, a, b, c, compute, scale_type(compute, c.type)};
}

Product make_half_product(const Form& f, const void* a, int lda, const void* b, int ldb, const void* c,
                          int ldc) {
    return make_product(f, {a, CUDA_R_16F, lda}, {b, CUDA_R_16F, ldb}, {c, CUDA_R_16F, ldc},
                        CUBLAS_COMPUTE_16F);
}

}  // namespace
}  // namespace cuda_on_cpu::blas

using namespace cuda_on_cpu::blas;

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* A, cudaDataType a_type, int lda, long long stride_a,
                                          const void* B, cudaDataType b_type, int ldb, long long stride_b,
                                          const void* beta, void* C, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
    return multiply_strided(Call(handle, __func__),
                            make_product({transa, transb, m, n, k}, {A, a_type, lda}, {B, b_type, ldb},
                                         {C, c_type, ldc}, compute),
                            stride_a, stride_b, stride_c, batch, alpha, beta);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void* alpha, const void* A, cudaDataType a_type, int lda,
                            const void* B, cudaDataType b_type, int ldb, const void* beta, void* C,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
    return multiply_strided(Call(handle, __func__),
                            make_product({transa, transb, m, n, k}, {A, a_type, lda}, {B, b_type, ldb},
                                         {C, c_type, ldc}, compute),
                            0, 0, 0, 1, alpha, beta);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                   int m, int n, int k, const void* alpha, const void* const A[],
                                   cudaDataType a_type, int lda, const void* const B[], cudaDataType b_type,
                                   int ldb, const void* beta, void* const C[], cudaDataType c_type, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
    return multiply_batch(Call(handle, __func__),
                          make_product({transa, transb, m, n, k}, {nullptr, a_type, lda},
                                       {nullptr, b_type, ldb}, {nullptr, c_type, ldc}, compute),
                          A, B, C, batch, alpha, beta);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                             int n, int k, const float* alpha, const void* A, cudaDataType a_type, int lda,
                             const void* B, cudaDataType b_type, int ldb, const float* beta, void* C,
                             cudaDataType c_type, int ldc) {
    return multiply_strided(Call(handle, __func__),
                            {transa,
                             transb,
                             m,
                             n,
                             k,
                             {A, a_type, lda},
                             {B, b_type, ldb},
                             {C, c_type, ldc},
                             CUBLAS_COMPUTE_32F,
                             CUDA_R_32F},
                            0, 0, 0, 1, alpha, beta);
}

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const __half* alpha, const __half* A, int lda, const __half* B,
                           int ldb, const __half* beta, __half* C, int ldc) {
    return multiply_strided(Call(handle, __func__),
                            make_half_product({transa, transb, m, n, k}, A, lda, B, ldb, C, ldc), 0, 0, 0, 1,
                            alpha, beta);
}

cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                                         const __half* A, int lda, long long stride_a, const __half* B,
                                         int ldb, long long stride_b, const __half* beta, __half* C, int ldc,
                                         long long stride_c, int batch) {
    return multiply_strided(Call(handle, __func__),
                            make_half_product({transa, transb, m, n, k}, A, lda, B, ldb, C, ldc), stride_a,
                            stride_b, stride_c, batch, alpha, beta);
}

cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                  int m, int n, int k, const __half* alpha, const __half* const A[], int lda,
                                  const __half* const B[], int ldb, const __half* beta, __half* const C[],
                                  int ldc, int batch) {
    return multiply_batch(
        Call(handle, __func__),
        make_half_product({transa, transb, m, n, k}, nullptr, lda, nullptr, ldb, nullptr, ldc),
        reinterpret_cast<const void* const*>(A), reinterpret_cast<const void* const*>(B),
        reinterpret_cast<void* const*>(C), batch, alpha, beta);
}
