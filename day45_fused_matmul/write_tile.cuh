// The plain epilogue: the elements of C go to memory.
#pragma once

#include <cuda_runtime.h>

#include "distance.cuh"
#include "factors.hpp"
#include "tiles.cuh"

namespace day45 {

// element = alpha sum + beta element. With beta = 0, the element is not read.
__device__ inline void update(float& element, float alpha, float sum, float beta) {
    element = beta == 0 ? alpha * sum : alpha * sum + beta * element;
}

struct WriteTile {
    Batch<float> c;
    float alpha;
    float beta;

    template <class T>
    struct State {};

    template <class T>
    __device__ void begin(State<T>&) const {}

    template <class T>
    __device__ void take(State<T>&, const Results<T>& at, const float (&sums)[T::TM][T::TN]) const {
        const course::DeviceMatrix<float> matrix = c[at.tile.product];
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
            if (at.row(i) >= matrix.rows()) continue;
#pragma unroll
            for (int j = 0; j < T::TN; ++j) {
                if (at.col(j) < matrix.cols()) update(matrix(at.row(i), at.col(j)), alpha, sums[i][j], beta);
            }
        }
    }

    template <class T, class Walk>
    __device__ void end(const State<T>&, const Walk&) const {}
};

// As a matrix of distances.
struct WriteDistances {
    Distance distance;
    WriteTile write;

    template <class T>
    using State = WriteTile::State<T>;

    template <class T>
    __device__ void begin(State<T>&) const {}

    template <class T>
    __device__ void take(State<T>& state, const Results<T>& at, float (&sums)[T::TM][T::TN]) const {
        distance.finish(at, sums);
        write.take<T>(state, at, sums);
    }

    template <class T, class Walk>
    __device__ void end(const State<T>&, const Walk&) const {}
};

}  // namespace day45
