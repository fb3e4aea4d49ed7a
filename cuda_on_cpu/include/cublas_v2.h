// cuBLAS on top of a BLAS of the host (OpenBLAS), for -lcublas. Matrices are column-major and in
// device memory; a function runs when its stream reaches it. Errors are those of cuBLAS: sizes,
// leading dimensions, increments and options are checked before any memory is accessed, and a
// message on stderr names the wrong one. Functions that are not declared here are not provided.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#define CUBLAS_API_H_  // include guards of NVIDIA's headers, for which programs test
#define CUBLAS_V2_H_

#include <stdint.h>
#include <stdio.h>
#ifdef __cplusplus
#include <type_traits>
#endif

#include "cuComplex.h"
#include "cuda_runtime_api.h"
#if defined(__cplusplus) && __cplusplus < 202002L
struct __half;  // cuda_fp16.h needs C++20
#else
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#endif
#include "library_types.h"

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)
#define CUBLASAPI
#define CUBLASWINAPI

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

typedef enum {
    CUBLAS_FILL_MODE_LOWER = 0,
    CUBLAS_FILL_MODE_UPPER = 1,
    CUBLAS_FILL_MODE_FULL = 2
} cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
    CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;

typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO1,
    CUBLAS_GEMM_ALGO2,
    CUBLAS_GEMM_ALGO3,
    CUBLAS_GEMM_ALGO4,
    CUBLAS_GEMM_ALGO5,
    CUBLAS_GEMM_ALGO6,
    CUBLAS_GEMM_ALGO7,
    CUBLAS_GEMM_ALGO8,
    CUBLAS_GEMM_ALGO9,
    CUBLAS_GEMM_ALGO10,
    CUBLAS_GEMM_ALGO11,
    CUBLAS_GEMM_ALGO12,
    CUBLAS_GEMM_ALGO13,
    CUBLAS_GEMM_ALGO14,
    CUBLAS_GEMM_ALGO15,
    CUBLAS_GEMM_ALGO16,
    CUBLAS_GEMM_ALGO17,
    CUBLAS_GEMM_ALGO18,
    CUBLAS_GEMM_ALGO19,
    CUBLAS_GEMM_ALGO20,
    CUBLAS_GEMM_ALGO21,
    CUBLAS_GEMM_ALGO22,
    CUBLAS_GEMM_ALGO23,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO1_TENSOR_OP,
    CUBLAS_GEMM_ALGO2_TENSOR_OP,
    CUBLAS_GEMM_ALGO3_TENSOR_OP,
    CUBLAS_GEMM_ALGO4_TENSOR_OP,
    CUBLAS_GEMM_ALGO5_TENSOR_OP,
    CUBLAS_GEMM_ALGO6_TENSOR_OP,
    CUBLAS_GEMM_ALGO7_TENSOR_OP,
    CUBLAS_GEMM_ALGO8_TENSOR_OP,
    CUBLAS_GEMM_ALGO9_TENSOR_OP,
    CUBLAS_GEMM_ALGO10_TENSOR_OP,
    CUBLAS_GEMM_ALGO11_TENSOR_OP,
    CUBLAS_GEMM_ALGO12_TENSOR_OP,
    CUBLAS_GEMM_ALGO13_TENSOR_OP,
    CUBLAS_GEMM_ALGO14_TENSOR_OP,
    CUBLAS_GEMM_ALGO15_TENSOR_OP,
    CUBLAS_GEMM_AUTOTUNE = 999
} cublasGemmAlgo_t;

typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;

// Low-precision operands are converted, summed in float, double or int32 (in float for COMPUTE_16F,
// too), and rounded once.
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

typedef cudaDataType cublasDataType_t;
typedef struct cublasContext* cublasHandle_t;

#ifdef __cplusplus
extern "C" {
#endif

// --- Handles -----------------------------------------------------------------------------------------------------------

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
// CUBLAS_POINTER_MODE_HOST: alpha, beta and results are in host memory; a function with a result
// waits for its stream.
// CUBLAS_POINTER_MODE_DEVICE: they are in device memory and are accessed when the stream reaches
// the function.
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
// These four settings are stored but do not change any result.
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes);

// --- Copies. Elements of `element_size` bytes ----------------------------------------------------------------------------

cublasStatus_t cublasSetVector(int n, int element_size, const void* x, int incx, void* device_y, int incy);
cublasStatus_t cublasGetVector(int n, int element_size, const void* device_x, int incx, void* y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int columns, int element_size, const void* A, int lda,
                               void* device_B, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int element_size, const void* device_A, int lda,
                               void* B, int ldb);
cublasStatus_t cublasSetVectorAsync(int n, int element_size, const void* x, int incx, void* device_y,
                                    int incy, cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int element_size, const void* device_x, int incx, void* y,
                                    int incy, cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element_size, const void* A, int lda,
                                    void* device_B, int ldb, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element_size, const void* device_A, int lda,
                                    void* B, int ldb, cudaStream_t stream);

// --- Functions of S, D, C and Z ------------------------------------------------------------------------------------------

#define CUBLAS_JOIN_(prefix, name) cublas##prefix##name
#define CUBLAS_JOIN(prefix, name) CUBLAS_JOIN_(prefix, name)
#define CUBLAS_FUNCTION(prefix, name, parameters, arguments) \
    cublasStatus_t CUBLAS_JOIN(prefix, name) parameters;
#include "cuda_on_cpu/cublas_each_type.inc"
#undef CUBLAS_FUNCTION

// --- Products of any types -------------------------------------------------------------------------------------------------

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const __half* alpha, const __half* A, int lda, const __half* B,
                           int ldb, const __half* beta, __half* C, int ldc);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                  int m, int n, int k, const __half* alpha, const __half* const A[], int lda,
                                  const __half* const B[], int ldb, const __half* beta, __half* const C[],
                                  int ldc, int batch);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                                         const __half* A, int lda, long long stride_a, const __half* B,
                                         int ldb, long long stride_b, const __half* beta, __half* C, int ldc,
                                         long long stride_c, int batch);
// The combinations of types of A, B and C with each compute type are those of cuBLAS; any other is
// CUBLAS_STATUS_NOT_SUPPORTED.
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                             int n, int k, const float* alpha, const void* A, cudaDataType a_type, int lda,
                             const void* B, cudaDataType b_type, int ldb, const float* beta, void* C,
                             cudaDataType c_type, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void* alpha, const void* A, cudaDataType a_type, int lda,
                            const void* B, cudaDataType b_type, int ldb, const void* beta, void* C,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                   int m, int n, int k, const void* alpha, const void* const A[],
                                   cudaDataType a_type, int lda, const void* const B[], cudaDataType b_type,
                                   int ldb, const void* beta, void* const C[], cudaDataType c_type, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* A, cudaDataType a_type, int lda, long long stride_a,
                                          const void* B, cudaDataType b_type, int ldb, long long stride_b,
                                          const void* beta, void* C, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);

// --- Level 1 of any types: half, bfloat16, float, double and complex numbers. Sums are in double precision and rounded once --------

cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type,
                            const void* x, cudaDataType x_type, int incx, void* y, cudaDataType y_type,
                            int incy, cudaDataType execution);
cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type, void* x,
                            cudaDataType x_type, int incx, cudaDataType execution);
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                           const void* y, cudaDataType y_type, int incy, void* result,
                           cudaDataType result_type, cudaDataType execution);
cublasStatus_t cublasDotcEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            const void* y, cudaDataType y_type, int incy, void* result,
                            cudaDataType result_type, cudaDataType execution);
cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* result, cudaDataType result_type, cudaDataType execution);
cublasStatus_t cublasAsumEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* result, cudaDataType result_type, cudaDataType execution);
cublasStatus_t cublasCopyEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* y, cudaDataType y_type, int incy);
cublasStatus_t cublasSwapEx(cublasHandle_t handle, int n, void* x, cudaDataType x_type, int incx, void* y,
                            cudaDataType y_type, int incy);
cublasStatus_t cublasIamaxEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                             int* result);
cublasStatus_t cublasIaminEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                             int* result);

#ifdef __cplusplus
}

// Before CUDA 11 the compute type was given as a data type.
namespace cuda_on_cpu {
inline cublasComputeType_t compute_type_of(cudaDataType type) {
    switch (type) {
        case CUDA_R_16F:
            return CUBLAS_COMPUTE_16F;
        case CUDA_R_64F:
        case CUDA_C_64F:
            return CUBLAS_COMPUTE_64F;
        case CUDA_R_32I:
            return CUBLAS_COMPUTE_32I;
        default:
            return CUBLAS_COMPUTE_32F;
    }
}
}  // namespace cuda_on_cpu
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                   int m, int n, int k, const void* alpha, const void* A, cudaDataType a_type,
                                   int lda, const void* B, cudaDataType b_type, int ldb, const void* beta,
                                   void* C, cudaDataType c_type, int ldc, cudaDataType compute,
                                   cublasGemmAlgo_t algorithm) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C,
                        c_type, ldc, cuda_on_cpu::compute_type_of(compute), algorithm);
}
inline cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* const A[], cudaDataType a_type, int lda,
                                          const void* const B[], cudaDataType b_type, int ldb,
                                          const void* beta, void* const C[], cudaDataType c_type, int ldc,
                                          int batch, cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta,
                               C, c_type, ldc, batch, cuda_on_cpu::compute_type_of(compute), algorithm);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* A, cudaDataType a_type, int lda, long long stride_a, const void* B,
    cudaDataType b_type, int ldb, long long stride_b, const void* beta, void* C, cudaDataType c_type, int ldc,
    long long stride_c, int batch, cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, a_type, lda, stride_a, B,
                                      b_type, ldb, stride_b, beta, C, c_type, ldc, stride_c, batch,
                                      cuda_on_cpu::compute_type_of(compute), algorithm);
}

#if __cplusplus >= 201703L
// The names with _64 take 64-bit sizes; only sizes that fit into 32 bits are supported.
namespace cuda_on_cpu {
template <class Argument>
bool fits_32_bits(Argument argument) {
    if constexpr (std::is_integral<Argument>::value && sizeof(Argument) == sizeof(int64_t)) {
        return argument == static_cast<int>(argument);
    } else {
        return true;
    }
}
template <class Argument>
auto as_32_bits(Argument argument) {
    if constexpr (std::is_integral<Argument>::value && sizeof(Argument) == sizeof(int64_t)) {
        return static_cast<int>(argument);
    } else {
        return argument;
    }
}
template <class... Parameters, class... Arguments>
cublasStatus_t call_with_32_bits(const char* name, cublasStatus_t (*function)(cublasHandle_t, Parameters...),
                                 cublasHandle_t handle, Arguments... arguments) {
    if ((fits_32_bits(arguments) && ...)) return function(handle, as_32_bits(arguments)...);
    fprintf(stderr, "cuda_on_cpu: %s: a size of 2^31 or more (CUBLAS_STATUS_NOT_SUPPORTED)\n", name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}
}  // namespace cuda_on_cpu
#define CUBLAS_64(name)                                                                  \
    template <class... Arguments>                                                        \
    cublasStatus_t name##_64(cublasHandle_t handle, Arguments... arguments) {            \
        return cuda_on_cpu::call_with_32_bits(#name "_64", &name, handle, arguments...); \
    }
#define CUBLAS_64_OF(name) CUBLAS_64(name)
#define CUBLAS_FUNCTION(prefix, name, parameters, arguments) CUBLAS_64_OF(CUBLAS_JOIN(prefix, name))
#include "cuda_on_cpu/cublas_each_type.inc"
#undef CUBLAS_FUNCTION
#undef CUBLAS_64
#undef CUBLAS_64_OF

// The names with _v2 that programs may use.
#define CUBLAS_ALIAS(name) inline constexpr auto& name##_v2 = name;
#define CUBLAS_ALIAS_OF(name) CUBLAS_ALIAS(name)
CUBLAS_ALIAS(cublasCreate)
CUBLAS_ALIAS(cublasDestroy)
CUBLAS_ALIAS(cublasGetVersion)
CUBLAS_ALIAS(cublasSetStream)
CUBLAS_ALIAS(cublasGetStream)
CUBLAS_ALIAS(cublasSetPointerMode)
CUBLAS_ALIAS(cublasGetPointerMode)
CUBLAS_ALIAS(cublasSetWorkspace)
#define CUBLAS_FUNCTION(prefix, name, parameters, arguments) CUBLAS_ALIAS_OF(CUBLAS_JOIN(prefix, name))
#include "cuda_on_cpu/cublas_each_type.inc"
#undef CUBLAS_FUNCTION
#undef CUBLAS_ALIAS
#undef CUBLAS_ALIAS_OF
#endif
#endif
#undef CUBLAS_JOIN
#undef CUBLAS_JOIN_

#include "cuda_on_cpu/macros_back.h"
