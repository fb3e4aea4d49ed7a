// What a thread multiplies of the tiles in shared memory, and the order in which it does.
#pragma once

#include <cuda_runtime.h>

#include "common/device/pack.cuh"
#include "common/tile/tile_shape.cuh"

namespace course {

// sum += a b; and what else can be made of a pair of factors where a product of matrices adds up
// products.
struct MultiplyAdd {
    __device__ void operator()(float& sum, float a, float b) const { sum += a * b; }
};

// Row i of a TM x TN outer product, sums[j] += a * b[j]: row 0 from left to right, row 1 from right
// to left, and so on. At each turn the next multiply-add has both the same a or b as the one before
// it. An operand that the instruction before has read too comes out of the reuse cache, not out of
// a bank of the register file, where three operands of one instruction may collide.
template <int TN, class Add = MultiplyAdd>
__device__ void multiply_row(int i, float a, const float (&b)[TN], float (&sums)[TN], Add add = {}) {
#pragma unroll
    for (int step = 0; step < TN; ++step) {
        const int j = i % 2 == 0 ? step : TN - 1 - step;
        add(sums[j], a, b[j]);
    }
}

// What a thread multiplies: TM values of a column of A, TN of a row of B. Read float4 by float4,
// B's first.
template <class T>
struct Fragments {
    static constexpr int QUADS = (T::TM + T::TN) / 4;

    float a[T::TM];
    float b[T::TN];

    template <class Stage>
    __device__ void read_quad(int quad, const Stage& stage, int k, const Place& place) {
        if (quad < T::TN / 4) {
            read(&stage.b[k][place.col + place_of<T::LANES_N>(0, quad * 4)], b + quad * 4);
        } else {
            const int i = quad * 4 - T::TN;
            read(&stage.a[k][place.row + place_of<T::LANES_M>(0, i)], a + i);
        }
    }

    template <class Stage>
    __device__ void read(const Stage& stage, int k, const Place& place) {
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad)
            read_quad(quad, stage, k, place);
    }

  private:
    static __device__ void read(const float* from, float* to) {
        const auto four = Pack<float, 4>::load(from);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            to[j] = four.value[j];
    }
};

// sums += a b, in the order of multiply_row(). Between its rows, the fragments of column k of
// `stage` are read into `next`.
template <class T, class Stage, class Add = MultiplyAdd>
__device__ void multiply_and_read_ahead(const Fragments<T>& now, float (&sums)[T::TM][T::TN],
                                        Fragments<T>& next, const Stage& stage, int k, const Place& place,
                                        Add add = {}) {
    constexpr int QUADS = Fragments<T>::QUADS;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            if (quad * T::TM / QUADS == i) next.read_quad(quad, stage, k, place);
        }
        multiply_row(i, now.a[i], now.b, sums[i], add);
    }
}

}  // namespace course
