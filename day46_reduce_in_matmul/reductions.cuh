// What the elements of a row can be reduced to. Each reduction is a struct:
//
//     State                what is known of some elements of a row
//     nothing()            of none of them
//     kNeutral             an element that changes no result: it stands where there is no column
//     add(states, values, col)    to states[i], the elements values[i][j] of columns col(j), which ascend
//     merge(a, b)          of the elements of both
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day46 {

// The smallest (MAX: largest) element and its column; of equal ones the first; a NaN before all others.
template <bool MAX>
struct Extremum {
    static constexpr float kNeutral =
        MAX ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    static constexpr unsigned kNone = 0xffffffff;  // behind every column

    struct State {
        float value;
        unsigned col;
    };

    static __device__ State nothing() { return {kNeutral, kNone}; }
    static __device__ bool precedes(float a, float b) { return MAX ? a > b : a < b; }
    static __device__ float first_of(float a, float b) {
        return MAX ? course::ptx::max_nan(a, b) : course::ptx::min_nan(a, b);
    }

    // First the best of each row, then where it stands. No branch but for NaN, so that rows do not wait for each other.
    template <int M, int N, class States, class Col>
    static __device__ void add(States states, const float (&values)[M][N], Col col) {
        float best[M];
        bool has_nan = false;
#pragma unroll
        for (int i = 0; i < M; ++i) {
            best[i] = values[i][0];
#pragma unroll
            for (int j = 1; j < N; ++j)
                best[i] = first_of(best[i], values[i][j]);
            has_nan |= isnan(best[i]);
        }
        if (has_nan) return add_one_by_one(states, values, col);
#pragma unroll
        for (int i = 0; i < M; ++i) {
            const State before = states(i);
            auto first = static_cast<unsigned>(col(N - 1));
#pragma unroll
            for (int j = N - 2; j >= 0; --j)
                first = values[i][j] == best[i] ? static_cast<unsigned>(col(j)) : first;
            const bool is_new = precedes(best[i], before.value) || before.col == kNone;
            states(i) = {is_new ? best[i] : before.value, is_new ? first : before.col};
        }
    }

    template <int M, int N, class States, class Col>
    static __device__ void add_one_by_one(States states, const float (&values)[M][N], Col col) {
#pragma unroll
        for (int i = 0; i < M; ++i) {
#pragma unroll
            for (int j = 0; j < N; ++j)
                states(i) = merge(states(i), {values[i][j], static_cast<unsigned>(col(j))});
        }
    }

    static __device__ State merge(const State& a, const State& b) {
        const bool a_is_nan = isnan(a.value);
        const bool b_is_nan = isnan(b.value);
        if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
        if (precedes(a.value, b.value)) return a;
        if (precedes(b.value, a.value)) return b;
        return a.col <= b.col ? a : b;
    }

    static __device__ State shuffled(const State& state, int distance) {
        return {__shfl_xor_sync(course::kWholeWarp, state.value, distance),
                __shfl_xor_sync(course::kWholeWarp, state.col, distance)};
    }
    static __device__ float value(const State& state) {
        return state.value;
    }
    static __device__ unsigned col(const State& state) {
        return state.col;
    }
};

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

// The online normaliser of day 20: the largest element, and the sum of exp(element - largest). Where the largest is infinite, 0 is
// subtracted in its place: exp(Inf) is Inf, and exp(-Inf) nothing.
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
