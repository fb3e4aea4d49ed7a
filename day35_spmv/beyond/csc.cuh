// Day 35, beyond: compressed sparse columns (CSC), the transpose of CSR.
//
//   version      what is new                                      what limits it
//   csc_atomic   a thread per column loads its x once, adds to y  L2: atomics    PMPP 5th edition, 17
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "spmv.cuh"

namespace day35 {

// Column c has the entries col_start[c] to col_start[c + 1] - 1, each with its row.
struct CscView {
    Index cols;
    const Offset* col_start;  // cols + 1 of them
    const Index* rows;
    const float* values;
};

// Idea: a thread per column. All its entries are multiplied by the same x[col], which stays in a
// register.
// Cost removed: COO's column numbers, and the scattered loads of x. Scattered atomics on y take
// their place: what CSR gathers, CSC scatters.
// Still limits it: L2, by an atomic per entry (counters, power law: 63 % busy). As in csr_scalar,
// the lanes of a warp load from 32 columns, far apart.
__global__ void csc_atomic_kernel(CscView a, const float* x, float* y) {
    const Offset col = global_thread();
    if (col >= a.cols) return;
    const float factor = x[col];
    for (Offset i = a.col_start[col]; i < a.col_start[col + 1]; ++i)
        atomicAdd(&y[a.rows[i]], a.values[i] * factor);
}

// y has `rows` elements.
inline void launch_csc_atomic(const CscView& a, Index rows, const float* x, float* y, cudaStream_t stream) {
    cudaMemsetAsync(y, 0, static_cast<std::size_t>(rows) * sizeof(float), stream);
    if (a.cols == 0) return;
    csc_atomic_kernel<<<course::blocks_for(a.cols, kBlock), kBlock, 0, stream>>>(a, x, y);
}

}  // namespace day35
