// Matrix products whose types are known only at run time.
#pragma once

#include "elements.hpp"

namespace cuda_on_cpu::blas {

struct Operand {
    const void* pointer;
    cudaDataType type;
    int leading;
};

// C = alpha op(A) op(B) + beta C, where op(A) is m x k.
struct Product {
    cublasOperation_t transa, transb;
    int m, n, k;
    Operand a, b, c;
    cublasComputeType_t compute;
    // The type of alpha and beta.
    cudaDataType scale;
};

bool is_supported(const Product& product);
cudaDataType scale_type(cublasComputeType_t compute, cudaDataType c);

// Returns false, after a message, if the operands are not in device memory. The operands and
// scalars are read now.
bool compute(const char* function, const Product& product, const void* alpha, const void* beta);

}  // namespace cuda_on_cpu::blas
