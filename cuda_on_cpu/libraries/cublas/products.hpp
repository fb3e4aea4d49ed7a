// Products of matrices whose types are known at run time.
#pragma once

#include "elements.hpp"

namespace cuda_on_cpu::blas {

struct Operand {
    const void* pointer;
    cudaDataType type;
    int leading;
};

// C = alpha op(A) op(B) + beta C, op(A) of m x k.
struct Product {
    cublasOperation_t transa, transb;
    int m, n, k;
    Operand a, b, c;
    cublasComputeType_t compute;
    cudaDataType scale;  // of alpha and beta
};

bool is_supported(const Product& product);
cudaDataType scale_type(cublasComputeType_t compute, cudaDataType c);

// The operands are device memory, or a sentence says that they are not. They and the scalars are
// read now.
bool compute(const char* function, const Product& product, const void* alpha, const void* beta);

}  // namespace cuda_on_cpu::blas
