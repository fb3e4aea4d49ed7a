// Day 46: the smallest or largest element of each row of a matrix product, and its column.
// PMPP chapters 6 and 10 (both editions).
//
// A metric computes an element from row i of op(A) and column j of op(B): their dot product, or a
// distance. With points as rows of A and centres as columns of B, the minimum of row i is the
// centre nearest to point i.
//
//   version   what is new                                     what limits it
//   unfused   the product goes to memory, another kernel      multiply-adds; then memory, where a
//             reads it                                        second kernel reads each element
//   fused     tiles are reduced while they are in registers   multiply-adds; with a short d, the
//                                                             reduction of a tile
//
// Each kernel is followed by its launch. beyond/ has a version on Hopper's tensor cores, sums and
// log-sum-exp (day 34), and k-means.
//
// A reduction along columns is one along rows of the transposed product, op(B)^T op(A)^T (op: the
// matrix or its transpose, as on day 45). So the kernels reduce only rows.
//
//   ./course run day46 --only fused --size 512x512x64
//   ./course run day46 --program                        program.cu: nearest centres, from main() on
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"
#include "row_partition.cuh"

namespace day46 {

constexpr int kThreads = 256;

// A reduction R is a struct with
//
//     R::State                        what is known of some elements of a row
//     R::nothing()                    the state of no elements
//     R::kNeutral                     an element that changes no result: for columns out of range
//     R::merge(a, b)                  the state of the elements of both
//     R::add(states, values, col)     adds the elements of a matrix, float values[M][N], to the states
//                                     of its M rows
//     R::shuffled(state, distance)    the state of the lane whose number differs by XOR with `distance`
//     R::value(state), R::col(state)  the results
//
// `states` and `col` are functions. states(i) returns a reference to the state of row i: in the
// fused kernel it is in shared memory, one for each of a thread's 16 rows. col(j) is the column of
// the product that values[i][j] belongs to; columns ascend with j.
//
// The kernels take any R: Extremum below, or one of beyond/other_reductions.cuh.

// Merges the states of LANES adjacent lanes. Each of them gets the result.
template <class R, int LANES>
__device__ typename R::State merge_lanes(typename R::State state) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        state = R::merge(state, R::shuffled(state, distance));
    return state;
}

// Idea: another kernel has written the matrix of distances. A block for each of its rows reduces
// it.
// Cost removed: none. This is the baseline.
// Still limits it: memory. Each element was written by one kernel and is read by this one.
template <class R>
__global__ void __launch_bounds__(kThreads)
    reduce_rows(const float* distances, std::size_t cols, float* values, std::uint32_t* indices) {
    constexpr int AT_ONCE = 4;  // loads of a thread in flight
    __shared__ typename R::State of_warp[kThreads / course::kWarpSize];
    const float* const row = distances + blockIdx.x * cols;
    typename R::State state = R::nothing();
    for (std::size_t begin = threadIdx.x; begin < cols; begin += AT_ONCE * kThreads) {
        float some[1][AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            some[0][j] = begin + j * kThreads < cols ? row[begin + j * kThreads] : R::kNeutral;
        // A thread has one row. (nvcc would warn of a lambda that returns `state` itself.)
        R::add(
            [only = &state](int) -> auto& { return *only; }, some,
            [&](int j) { return begin + j * kThreads; });
    }
    state = merge_lanes<R, course::kWarpSize>(state);
    if (threadIdx.x % course::kWarpSize == 0) of_warp[threadIdx.x / course::kWarpSize] = state;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < kThreads / course::kWarpSize; ++warp)
        state = R::merge(state, of_warp[warp]);
    values[blockIdx.x] = R::value(state);
    if (indices != nullptr) indices[blockIdx.x] = R::col(state);
}

// `indices`: null if none are requested.
template <class R>
void launch_reduce_rows(const float* distances, std::size_t rows, std::size_t cols, float* values,
                        std::uint32_t* indices, cudaStream_t stream) {
    reduce_rows<R><<<course::blocks_for(rows, 1), kThreads, 0, stream>>>(distances, cols, values, indices);
}

// The smallest (MAX: largest) element of a row and its column. Of equal elements the first counts;
// NaN precedes all numbers, as in PyTorch.
template <bool MAX>
struct Extremum {
    static constexpr unsigned kNoCol = 0xffffffff;  // after every column
    static constexpr float kNeutral =
        MAX ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();

    struct State {
        float value;
        unsigned col;
    };

    static __device__ State nothing() { return {kNeutral, kNoCol}; }

    static __device__ bool precedes(float a, float b) { return MAX ? a > b : a < b; }

    // The result does not depend on the order of merges.
    static __device__ State merge(const State& a, const State& b) {
        const bool a_is_nan = isnan(a.value);
        const bool b_is_nan = isnan(b.value);
        if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
        if (precedes(a.value, b.value)) return a;
        if (precedes(b.value, a.value)) return b;
        return a.col <= b.col ? a : b;
    }

    static __device__ float first_of(float a, float b) {
        return MAX ? course::ptx::max_nan(a, b) : course::ptx::min_nan(a, b);
    }

    // For each row: the best of the N values, then its column, then one comparison with the state.
    // Because there is no branch except for NaN, the work of the M rows overlaps.
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
            const bool is_new = precedes(best[i], before.value) || before.col == kNoCol;
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

// Template parameters from here on:
//     R        a reduction, as above
//     T        the tile (course::TileShape): BM x BN of a block, WM x WN of a warp, TM x TN of a thread
//     LoaderB  copies B float by float, or 16 bytes at a time

// Each thread's states of its TM rows: states[i][threadIdx.x]. They are in shared memory, because
// the sums take most registers.
template <class R, class T>
using RowStates = typename R::State[T::TM][T::THREADS];

// Reduces a finished tile: sums become distances, distances become part of the states.
template <class R, class T>
__device__ void add_tile(RowStates<R, T>& states, const course::Distance& distance,
                         const course::ThreadTileCoords<T>& at, float (&sums)[T::TM][T::TN]) {
    distance.finish(at, sums);  // squared_l2: max(0, |a|^2 + |b|^2 - 2 sum)
    const bool is_whole = at.tile.col + T::BN <= distance.n;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
            if (!is_whole && at.col(j) >= distance.n) sums[i][j] = R::kNeutral;
        }
    }
    R::add(
        [&](int i) -> auto& { return states[i][threadIdx.x]; }, sums, [&](int j) { return at.col(j); });
}

// Writes the block's states of its rows, a part for each warp: parts[part * results + row], where
// `row` counts the rows of all products, and `results` is their number. `at`: any tile of the
// block's rows. `block_in_row`: the number of the block among those of the row of tiles.
template <class R, class T>
__device__ void write_parts(const RowStates<R, T>& states, const course::Distance& distance,
                            const course::ThreadTileCoords<T>& at, unsigned block_in_row, std::size_t results,
                            typename R::State* parts) {
    constexpr unsigned WARPS_N = T::BN / T::WN;
    const unsigned part = block_in_row * WARPS_N + threadIdx.x / 32 % WARPS_N;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        const typename R::State row = merge_lanes<R, T::LANES_N>(states[i][threadIdx.x]);
        if (threadIdx.x % T::LANES_N == 0 && at.row(i) < distance.m)
            parts[part * results + at.tile.product * distance.m + at.row(i)] = row;
    }
}

// Idea: the epilogue does not store the tile. Instead, each thread merges its 16 x 8 elements into
// the states of its rows.
// Cost removed: writing and reading the matrix, 8 bytes for each element. (The README explains why
// that does not halve the time.)
// Still limits it: the multiply-adds; with a short d, the reduction of a tile.
//
// multiply_tiles() is the main loop of day 45 as a function: it multiplies the tiles of `walk` and
// calls its last argument with each finished tile.
// Add: MultiplyAdd, or AddSquaredDifference for the metric kDifferences.
template <class R, class T, class LoaderB, class Add>
__global__ void __launch_bounds__(T::THREADS, 1)
    reduce_tiles(const __grid_constant__ course::Operands operands,
                 const __grid_constant__ RowPartition<T> tiles,
                 const __grid_constant__ course::Distance distance, std::size_t results,
                 typename R::State* parts) {
    using LoaderA = course::ElementLoader<T::BM, T::BK, T::THREADS>;
    extern __shared__ float4 memory[];
    auto* const stages = reinterpret_cast<course::Stage<T>*>(memory);
    __shared__ RowStates<R, T> states;
    const auto walk = tiles.walk();
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
        states[i][threadIdx.x] = R::nothing();
    course::multiply_tiles<T, LoaderA, LoaderB>(
        operands, walk, stages, Add{}, [&](const course::Tile& tile, float(&sums)[T::TM][T::TN]) {
            add_tile<R, T>(states, distance, course::ThreadTileCoords<T>{tile}, sums);
        });
    write_parts<R, T>(states, distance, course::ThreadTileCoords<T>{walk.at(0)},
                      blockIdx.x / tiles.rows_of_tiles, results, parts);
}

// Dynamic shared memory of a block: the stages of the main loop.
template <class T>
constexpr std::size_t kStages = sizeof(course::Stage<T>) * T::STAGES;

// Parts of each row: one for each warp of a row of the tile, in each block of the row.
template <class T>
constexpr unsigned parts_of_row(const RowPartition<T>& tiles) {
    return tiles.blocks_per_row * (T::BN / T::WN);
}

// `results`: the rows of all products. `parts` has parts_of_row() states for each of them.
template <class R, class T, class LoaderB, class Add>
void launch_reduce_tiles(const course::Operands& operands, const RowPartition<T>& tiles,
                         const course::Distance& distance, std::size_t results, typename R::State* parts,
                         cudaStream_t stream) {
    const unsigned grid = tiles.rows_of_tiles * tiles.blocks_per_row;
    // As <<<grid, T::THREADS, kStages<T>, stream>>>, but with more than 48 KB of shared memory.
    course::launch(reduce_tiles<R, T, LoaderB, Add>, {grid, T::THREADS, kStages<T>, stream}, operands, tiles,
                   distance, results, parts);
}

// Idea: a thread for each row merges its parts, always in the same order.
// Cost removed: atomics, with which a sum would differ from run to run.
// Still limits it: the launch and latency (counters: 4 us, no unit 10 % busy).
template <class R>
__global__ void merge_parts(const typename R::State* parts, unsigned count, std::size_t results,
                            float* values, std::uint32_t* indices) {
    const std::size_t row = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= results) return;
    typename R::State state = R::nothing();
#pragma unroll 8
    for (unsigned part = 0; part < count; ++part)
        state = R::merge(state, parts[part * results + row]);
    values[row] = R::value(state);
    if (indices != nullptr) indices[row] = R::col(state);
}

template <class R>
void launch_merge_parts(const typename R::State* parts, unsigned count, std::size_t results, float* values,
                        std::uint32_t* indices, cudaStream_t stream) {
    merge_parts<R><<<course::blocks_for(results, kThreads), kThreads, 0, stream>>>(parts, count, results,
                                                                                   values, indices);
}

}  // namespace day46
