// cuSOLVER for dense matrices on top of the host's LAPACK (OpenBLAS), for -lcusolver: LU, Cholesky
// and QR factorisations, symmetric eigenvalues, singular values. Matrices are column-major and in
// device memory; a function runs when its stream reaches it. Sizes, leading dimensions and options
// are checked before any memory is accessed, and a message on stderr names the wrong one. What the
// data is to blame for, a zero pivot for example, is in devInfo, as in LAPACK. Functions that are
// not declared here are not provided.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#define CUSOLVERDN_H_  // the include guard of NVIDIA's header, for which programs test

#include "cuComplex.h"
#include "cublas_v2.h"
#include "cuda_runtime_api.h"
#include "cusolver_common.h"
#include "library_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef struct cusolverDnParams* cusolverDnParams_t;
typedef enum { CUSOLVERDN_GETRF = 0, CUSOLVERDN_POTRF = 1, CUSOLVERDN_SYEVBATCHED = 2 } cusolverDnFunction_t;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream);
cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode);
cusolverStatus_t cusolverDnGetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t* mode);

// A = P L U and its use. With ipiv null there is no pivoting.
#define CUSOLVER_FUNCTIONS(S, T, R)                                                                          \
    cusolverStatus_t cusolverDn##S##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T* A, int lda, \
                                                     int* lwork);                                            \
    cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t handle, int m, int n, T* A, int lda,            \
                                          T* workspace, int* ipiv, int* info);                               \
    cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t handle, cublasOperation_t trans, int n,         \
                                          int nrhs, const T* A, int lda, const int* ipiv, T* B, int ldb,     \
                                          int* info);                                                        \
    /* A = L L^H or U^H U, its use, and the inverse */                                                       \
    cusolverStatus_t cusolverDn##S##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo,       \
                                                     int n, T* A, int lda, int* lwork);                      \
    cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T* A,     \
                                          int lda, T* workspace, int lwork, int* info);                      \
    cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs, \
                                          const T* A, int lda, T* B, int ldb, int* info);                    \
    cusolverStatus_t cusolverDn##S##potri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo,       \
                                                     int n, T* A, int lda, int* lwork);                      \
    cusolverStatus_t cusolverDn##S##potri(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T* A,     \
                                          int lda, T* workspace, int lwork, int* info);                      \
    cusolverStatus_t cusolverDn##S##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,    \
                                                 T* A[], int lda, int* info, int batch);                     \
    cusolverStatus_t cusolverDn##S##potrsBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,    \
                                                 int nrhs, T* A[], int lda, T* B[], int ldb, int* info,      \
                                                 int batch);                                                 \
    /* A = Q R, in the form of LAPACK */                                                                     \
    cusolverStatus_t cusolverDn##S##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T* A, int lda, \
                                                     int* lwork);                                            \
    cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t handle, int m, int n, T* A, int lda, T* tau,    \
                                          T* workspace, int lwork, int* info);                               \
    /* A = U S V^H. m must not be less than n */                                                             \
    cusolverStatus_t cusolverDn##S##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, int* lwork);   \
    cusolverStatus_t cusolverDn##S##gesvd(cusolverDnHandle_t handle, signed char jobu, signed char jobvt,    \
                                          int m, int n, T* A, int lda, R* singular, T* U, int ldu, T* VT,    \
                                          int ldvt, T* workspace, int lwork, R* rwork, int* info);
CUSOLVER_FUNCTIONS(S, float, float)
CUSOLVER_FUNCTIONS(D, double, double)
CUSOLVER_FUNCTIONS(C, cuComplex, float)
CUSOLVER_FUNCTIONS(Z, cuDoubleComplex, double)
#undef CUSOLVER_FUNCTIONS

// Those whose names differ between real and complex types: C = op(Q) C or C op(Q); Q itself;
// eigenvalues of symmetric matrices, in ascending order, with the vectors in the place of A; and of
// A x = lambda B x.
#define CUSOLVER_FUNCTIONS(Q, E, T, R)                                                                       \
    cusolverStatus_t cusolverDn##Q##mqr_bufferSize(cusolverDnHandle_t handle, cublasSideMode_t side,         \
                                                   cublasOperation_t trans, int m, int n, int k, const T* A, \
                                                   int lda, const T* tau, const T* C, int ldc, int* lwork);  \
    cusolverStatus_t cusolverDn##Q##mqr(cusolverDnHandle_t handle, cublasSideMode_t side,                    \
                                        cublasOperation_t trans, int m, int n, int k, const T* A, int lda,   \
                                        const T* tau, T* C, int ldc, T* workspace, int lwork, int* info);    \
    cusolverStatus_t cusolverDn##Q##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k,           \
                                                   const T* A, int lda, const T* tau, int* lwork);           \
    cusolverStatus_t cusolverDn##Q##gqr(cusolverDnHandle_t handle, int m, int n, int k, T* A, int lda,       \
                                        const T* tau, T* workspace, int lwork, int* info);                   \
    cusolverStatus_t cusolverDn##E##evd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t jobz,        \
                                                   cublasFillMode_t uplo, int n, const T* A, int lda,        \
                                                   const R* W, int* lwork);                                  \
    cusolverStatus_t cusolverDn##E##evd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,                   \
                                        cublasFillMode_t uplo, int n, T* A, int lda, R* W, T* workspace,     \
                                        int lwork, int* info);                                               \
    cusolverStatus_t cusolverDn##E##gvd_bufferSize(                                                          \
        cusolverDnHandle_t handle, cusolverEigType_t type, cusolverEigMode_t jobz, cublasFillMode_t uplo,    \
        int n, const T* A, int lda, const T* B, int ldb, const R* W, int* lwork);                            \
    cusolverStatus_t cusolverDn##E##gvd(cusolverDnHandle_t handle, cusolverEigType_t type,                   \
                                        cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T* A, int lda, \
                                        T* B, int ldb, R* W, T* workspace, int lwork, int* info);
CUSOLVER_FUNCTIONS(Sor, Ssy, float, float)
CUSOLVER_FUNCTIONS(Dor, Dsy, double, double)
CUSOLVER_FUNCTIONS(Cun, Che, cuComplex, float)
CUSOLVER_FUNCTIONS(Zun, Zhe, cuDoubleComplex, double)
#undef CUSOLVER_FUNCTIONS

// --- The functions with 64-bit sizes. All types of a call are those of A: CUDA_R_32F, CUDA_R_64F,
// CUDA_C_32F or CUDA_C_64F; eigenvalues are real ---

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* params);
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params);
cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                         cusolverAlgMode_t algorithm);
cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType type, const void* A, int64_t lda,
                                             cudaDataType compute, size_t* device_bytes, size_t* host_bytes);
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType type, void* A, int64_t lda, int64_t* ipiv,
                                  cudaDataType compute, void* device_buffer, size_t device_bytes,
                                  void* host_buffer, size_t host_bytes, int* info);
cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cublasOperation_t trans, int64_t n, int64_t nrhs, cudaDataType type,
                                  const void* A, int64_t lda, const int64_t* ipiv, cudaDataType type_of_b,
                                  void* B, int64_t ldb, int* info);
cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cublasFillMode_t uplo, int64_t n, cudaDataType type,
                                             const void* A, int64_t lda, cudaDataType compute,
                                             size_t* device_bytes, size_t* host_bytes);
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo,
                                  int64_t n, cudaDataType type, void* A, int64_t lda, cudaDataType compute,
                                  void* device_buffer, size_t device_bytes, void* host_buffer,
                                  size_t host_bytes, int* info);
cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo,
                                  int64_t n, int64_t nrhs, cudaDataType type, const void* A, int64_t lda,
                                  cudaDataType type_of_b, void* B, int64_t ldb, int* info);
cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                             int64_t n, cudaDataType type, const void* A, int64_t lda,
                                             cudaDataType type_of_tau, const void* tau, cudaDataType compute,
                                             size_t* device_bytes, size_t* host_bytes);
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                  cudaDataType type, void* A, int64_t lda, cudaDataType type_of_tau,
                                  void* tau, cudaDataType compute, void* device_buffer, size_t device_bytes,
                                  void* host_buffer, size_t host_bytes, int* info);
cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                             cudaDataType type, const void* A, int64_t lda,
                                             cudaDataType type_of_w, const void* W, cudaDataType compute,
                                             size_t* device_bytes, size_t* host_bytes);
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n, cudaDataType type,
                                  void* A, int64_t lda, cudaDataType type_of_w, void* W, cudaDataType compute,
                                  void* device_buffer, size_t device_bytes, void* host_buffer,
                                  size_t host_bytes, int* info);

#ifdef __cplusplus
}
#endif

#include "cuda_on_cpu/macros_back.h"
