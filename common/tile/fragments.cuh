// The fragments that a thread multiplies, and the order of its multiply-adds.
#pragma once

#include <cuda_runtime.h>

#include "common/device/pack.cuh"
#include "common/tile/tile_shape.cuh"

namespace course {

// sum += a b. Other functors can take its place, to add another function of a and b.
struct MultiplyAdd {
    __device__ void operator()(float& sum, float a, float b) const { sum += a * b; }
};

// Row i of a TM x TN outer product, sums[j] += a * b[j]: row 0 from left to right, row 1 from right
// to left, and so on. So each multiply-add shares an operand with the one before it, even where
// the direction changes. An operand that the previous instruction has read, too, comes from the
// reuse cache and not from a bank of the register file, where the three operands of an instruction
// may conflict.
template <int TN, class Add = MultiplyAdd>
__device__ void multiply_row(int i, float a, const float (&b)[TN], float (&sums)[TN], Add add = {}) {
#pragma unroll
    for (int step = 0; step < TN; ++step) {
        const int j = i % 2 == 0 ? step : TN - 1 - step;
        add(sums[j], a, b[j]);
    }
}

// A thread's operands: TM values of a column of A, TN of a row of B. They are loaded float4 by
// float4, those of B first.
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

// sums += a b, in the order of multiply_row(). Between the rows, the fragments of column k of
// `stage` are loaded into `next`.
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
