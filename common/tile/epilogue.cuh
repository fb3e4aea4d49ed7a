// The plain epilogue: the elements of C go to memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"
#include "common/tile/tile_order.cuh"

namespace course {

// Can four adjacent elements of a row be stored together, from a column that is a multiple of 4?
__device__ inline bool has_aligned_rows(const DeviceMatrix<float>& matrix) {
    return reinterpret_cast<std::uintptr_t>(matrix.data()) % 16 == 0 && matrix.leading_dimension() % 4 == 0;
}

// Writes value(i, j) to row at.row(i) and column at.col(j) if they are in range; only then is
// value() called. Aligned rows are stored float4 by float4, except by a thread with columns out of
// range.
//
// A float4 store needs adjacent registers. A value that is computed here, even if only multiplied
// by alpha, gets registers of its own. If the sums were stored directly, they would be accumulated
// in adjacent registers, in the same register-file banks as the operands, and every multiply-add
// would be slower.
template <class T, class Value>
__device__ void write_tile(const ThreadTileCoords<T>& at, const DeviceMatrix<float>& matrix, Value value) {
    if (has_aligned_rows(matrix) && at.col(T::TN - 1) < matrix.cols()) {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
            if (at.row(i) >= matrix.rows()) continue;
#pragma unroll
            for (int j = 0; j < T::TN; j += 4) {
                const Pack<float, 4> four{{value(i, j), value(i, j + 1), value(i, j + 2), value(i, j + 3)}};
                four.store(&matrix(at.row(i), at.col(j)));
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
            if (at.row(i) >= matrix.rows()) continue;
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                if (at.col(j) < matrix.cols()) matrix(at.row(i), at.col(j)) = value(i, j);
            }
        }
    }
}

}  // namespace course
