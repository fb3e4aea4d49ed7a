// Day 46, beyond: the sum and the log-sum-exp of the elements of a row, reductions R as defined in
// reduce_in_matmul.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day46 {

struct Sum {
    static constexpr float kNeutral = 0;
    struct State {
        float sum;
    };

    static __device__ State nothing() { return {0}; }

    template <int M, int N, class States, class Col>
    static __device__ void add(States states, const float (&values)[M][N], Col) {
#pragma unroll
        for (int i = 0; i < M; ++i) {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < N; ++j)
                sum += values[i][j];
            states(i).sum += sum;
        }
    }

    static __device__ State merge(const State& a, const State& b) {
        return {a.sum + b.sum};
    }
    static __device__ State shuffled(const State& state, int distance) {
        return {__shfl_xor_sync(course::kWholeWarp, state.sum, distance)};
    }
    static __device__ float value(const State& state) {
        return state.sum;
    }
    static __device__ unsigned col(const State&) {
        return 0;
    }
};

// The online softmax of day 20: the largest element, and the sum of exp(element - largest). An
// infinite maximum is replaced by 0 in the exponent: exp(Inf) is Inf, and exp(-Inf) is 0.
struct LogSumExp {
    static constexpr float kNeutral = -std::numeric_limits<float>::infinity();
    struct State {
        float max;
        float sum;
    };

    static __device__ State nothing() { return {kNeutral, 0}; }
    static __device__ float finite(float max) { return isinf(max) ? 0 : max; }

    static __device__ float exp(float x) {
        return course::ptx::exp2_approx(x * std::numbers::log2e_v<float>);
    }

    template <int M, int N, class States, class Col>
    static __device__ void add(States states, const float (&values)[M][N], Col) {
#pragma unroll
        for (int i = 0; i < M; ++i) {
            State more{states(i).max, 0};
#pragma unroll
            for (int j = 0; j < N; ++j)
                more.max = fmaxf(more.max, values[i][j]);
#pragma unroll
            for (int j = 0; j < N; ++j)
                more.sum += exp(values[i][j] - finite(more.max));
            states(i) = merge(states(i), more);
        }
    }

    static __device__ State merge(const State& a, const State& b) {
        const float max = fmaxf(a.max, b.max);
        return {max, scaled(a, max) + scaled(b, max)};
    }
    static __device__ float scaled(const State& state, float max) {
        return state.sum == 0 ? 0 : state.sum * exp(finite(state.max) - finite(max));
    }
    static __device__ State shuffled(const State& state, int distance) {
        return {__shfl_xor_sync(course::kWholeWarp, state.max, distance),
                __shfl_xor_sync(course::kWholeWarp, state.sum, distance)};
    }
    static __device__ float value(const State& state) {
        return finite(state.max) + logf(state.sum);
    }
    static __device__ unsigned col(const State&) {
        return 0;
    }
};

}  // namespace day46
