// Distances as functors: the term that each pair of elements adds to a sum, and the distance
// computed from the sum.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/ptx.cuh"
#include "common/tile/distance.hpp"
#include "common/tile/fragments.cuh"
#include "common/tile/tile_order.cuh"

namespace course {

// The term of kDifferences; the other metrics use MultiplyAdd.
struct AddSquaredDifference {
    __device__ void operator()(float& sum, float a, float b) const {
        const float difference = a - b;
        sum += difference * difference;
    }
};

// Calls `work` with the functor that adds the terms of the metric.
template <class Work>
void with_add(Metric metric, const Work& work) {
    if (metric == Metric::kDifferences) {
        work(AddSquaredDifference{});
    } else {
        work(MultiplyAdd{});
    }
}

// From sums to distances.
struct Distance {
    Metric metric;
    const float* norms_a;  // of the rows of op(A), m for each product
    const float* norms_b;  // of the columns of op(B), n for each product
    std::size_t m;
    std::size_t n;

    __device__ bool takes_norms() const { return metric == Metric::kSquaredL2 || metric == Metric::kCosine; }

    // At has the row() and col() of a sum in the product, like ThreadTileCoords. It may also have
    // norm_of_row().
    // COLUMNS_INSIDE: all columns are in range.
    template <bool COLUMNS_INSIDE = false, class At, int TM, int TN>
    __device__ void finish(const At& at, float (&sums)[TM][TN]) const {
        if (metric == Metric::kSquaredL2) {
            finish_with_norms<COLUMNS_INSIDE>(at, sums, [](float sum, float a, float b) {
                return ptx::max_nan(fmaf(-2, sum, a + b), 0);  // a NaN stays a NaN
            });
        } else if (metric == Metric::kCosine) {
            finish_with_norms<COLUMNS_INSIDE>(at, sums,
                                              [](float sum, float a, float b) { return 1 - sum * a * b; });
        }
    }

  private:
    template <class At>
    __device__ float norm_of_row(const At& at, int i) const {
        if constexpr (requires { at.norm_of_row(i); }) {
            return at.norm_of_row(i);
        } else {
            return at.row(i) < m ? norms_a[at.tile.product * m + at.row(i)] : 0;
        }
    }

    template <bool COLUMNS_INSIDE, class At, int TM, int TN, class Finish>
    __device__ void finish_with_norms(const At& at, float (&sums)[TM][TN], Finish finish) const {
        float b[TN];
#pragma unroll
        for (int j = 0; j < TN; ++j)
            b[j] = COLUMNS_INSIDE || at.col(j) < n ? norms_b[at.tile.product * n + at.col(j)] : 0;
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const float a = norm_of_row(at, i);
#pragma unroll
            for (int j = 0; j < TN; ++j)
                sums[i][j] = finish(sums[i][j], a, b[j]);
        }
    }
};

// Queues the computation of the norms that the metric needs, if any. They are stored at the start
// of `scratch`.
template <class T>
Distance launch_distance(Metric metric, const OperandsOf<T>& operands, std::uint64_t* scratch,
                         cudaStream_t stream) {
    float* const norms = reinterpret_cast<float*>(scratch);
    const std::size_t size = norms_size(metric, operands.m(), operands.n(), operands.count());
    launch_norms(metric, operands, DeviceSpan<float>::from_device_pointer(norms, size), stream);
    return {metric, norms, norms + operands.m() * operands.count(), operands.m(), operands.n()};
}

}  // namespace course
