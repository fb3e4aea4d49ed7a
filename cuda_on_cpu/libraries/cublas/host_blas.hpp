// The host's BLAS under names without the letter of the type: Cblas<float>::gemm is cblas_sgemm.
#pragma once

#include <cblas.h>

#include <complex>

#include "cublas_v2.h"

namespace cuda_on_cpu::blas {

template <class T>
struct Cblas;

#define CUDA_ON_CPU_CBLAS(x)                         \
    static constexpr auto* axpy = cblas_##x##axpy;   \
    static constexpr auto* copy = cblas_##x##copy;   \
    static constexpr auto* swap = cblas_##x##swap;   \
    static constexpr auto* gemv = cblas_##x##gemv;   \
    static constexpr auto* gbmv = cblas_##x##gbmv;   \
    static constexpr auto* trmv = cblas_##x##trmv;   \
    static constexpr auto* trsv = cblas_##x##trsv;   \
    static constexpr auto* tbmv = cblas_##x##tbmv;   \
    static constexpr auto* tbsv = cblas_##x##tbsv;   \
    static constexpr auto* tpmv = cblas_##x##tpmv;   \
    static constexpr auto* tpsv = cblas_##x##tpsv;   \
    static constexpr auto* gemm = cblas_##x##gemm;   \
    static constexpr auto* symm = cblas_##x##symm;   \
    static constexpr auto* syrk = cblas_##x##syrk;   \
    static constexpr auto* syr2k = cblas_##x##syr2k; \
    static constexpr auto* trmm = cblas_##x##trmm;   \
    static constexpr auto* trsm = cblas_##x##trsm;
// For real matrices, the Hermitian functions are the symmetric ones.
#define CUDA_ON_CPU_CBLAS_REAL(x)                    \
    static constexpr auto* asum = cblas_##x##asum;   \
    static constexpr auto* nrm2 = cblas_##x##nrm2;   \
    static constexpr auto* dot = cblas_##x##dot;     \
    static constexpr auto* rotg = cblas_##x##rotg;   \
    static constexpr auto* rotm = cblas_##x##rotm;   \
    static constexpr auto* rotmg = cblas_##x##rotmg; \
    static constexpr auto* symv = cblas_##x##symv;   \
    static constexpr auto* syr = cblas_##x##syr;     \
    static constexpr auto* syr2 = cblas_##x##syr2;   \
    static constexpr auto* ger = cblas_##x##ger;     \
    static constexpr auto* hbmv = cblas_##x##sbmv;   \
    static constexpr auto* hpmv = cblas_##x##spmv;   \
    static constexpr auto* hpr = cblas_##x##spr;     \
    static constexpr auto* hpr2 = cblas_##x##spr2;
#define CUDA_ON_CPU_CBLAS_COMPLEX(x)                   \
    static constexpr auto* dotu = cblas_##x##dotu_sub; \
    static constexpr auto* dotc = cblas_##x##dotc_sub; \
    static constexpr auto* hemv = cblas_##x##hemv;     \
    static constexpr auto* her = cblas_##x##her;       \
    static constexpr auto* her2 = cblas_##x##her2;     \
    static constexpr auto* geru = cblas_##x##geru;     \
    static constexpr auto* gerc = cblas_##x##gerc;     \
    static constexpr auto* hbmv = cblas_##x##hbmv;     \
    static constexpr auto* hpmv = cblas_##x##hpmv;     \
    static constexpr auto* hpr = cblas_##x##hpr;       \
    static constexpr auto* hpr2 = cblas_##x##hpr2;     \
    static constexpr auto* hemm = cblas_##x##hemm;     \
    static constexpr auto* herk = cblas_##x##herk;     \
    static constexpr auto* her2k = cblas_##x##her2k;

template <>
struct Cblas<float> {
    CUDA_ON_CPU_CBLAS(s)
    CUDA_ON_CPU_CBLAS_REAL(s)
};
template <>
struct Cblas<double> {
    CUDA_ON_CPU_CBLAS(d)
    CUDA_ON_CPU_CBLAS_REAL(d)
};
template <>
struct Cblas<std::complex<float>> {
    CUDA_ON_CPU_CBLAS(c)
    CUDA_ON_CPU_CBLAS_COMPLEX(c)
    static constexpr auto* asum = cblas_scasum;
    static constexpr auto* nrm2 = cblas_scnrm2;
};
template <>
struct Cblas<std::complex<double>> {
    CUDA_ON_CPU_CBLAS(z)
    CUDA_ON_CPU_CBLAS_COMPLEX(z)
    static constexpr auto* asum = cblas_dzasum;
    static constexpr auto* nrm2 = cblas_dznrm2;
};
#undef CUDA_ON_CPU_CBLAS
#undef CUDA_ON_CPU_CBLAS_REAL
#undef CUDA_ON_CPU_CBLAS_COMPLEX

// CBLAS takes real scalars by value, and complex ones by address.
inline float by_value(const float& scalar) {
    return scalar;
}
inline double by_value(const double& scalar) {
    return scalar;
}
template <class T>
const void* by_value(const std::complex<T>& scalar) {
    return &scalar;
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

template <class T>
T conjugate(T value) {
    if constexpr (kComplex<T>) {
        return std::conj(value);
    } else {
        return value;
    }
}

inline CBLAS_TRANSPOSE to_cblas(cublasOperation_t operation) {
    return operation == CUBLAS_OP_N ? CblasNoTrans : operation == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
inline CBLAS_UPLO to_cblas(cublasFillMode_t uplo) {
    return uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
inline CBLAS_DIAG to_cblas(cublasDiagType_t diag) {
    return diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}
inline CBLAS_SIDE to_cblas(cublasSideMode_t side) {
    return side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}

}  // namespace cuda_on_cpu::blas
