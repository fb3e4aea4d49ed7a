// Day 25, part 1: scoring functions. How well does each state s_j of an encoder match the state h
// of a decoder? S has a state per row; every row gets a score.
// PMPP chapters 5, 6 and 10 (both editions), 20 (5th edition).
//
//   version                 formula               stored in between        what limits it
//   dot_separate            h . s_j               states x width           memory, written and read again
//   dot_per_thread          h . s_j               -                        a sector for each float
//   dot_fused               h . s_j               -                        memory: S, once
//   luong_states_first      h^T (W s_j)           states x hidden          the matrix product
//   luong_hidden_first      (h^T W) s_j           width                    latency: few blocks for h^T W
//   luong_narrow            (h^T W) s_j           width                    two kernels, one after the other
//   luong_early             (h^T W) s_j           width                    memory: W and S, once
//                                                          ... bahdanau.cuh:
//   bahdanau_concatenated   v . tanh(W [h; s_j])  states x                 the matrix product, memory
//                                                   (hidden + width)
//   bahdanau_split          W_h h + W_s s_j       states x units           the matrix product
//   bahdanau_fused          W_h h + W_s s_j       states x units / 64      the matrix product
//                                                          ... scores_tensor_cores.cuh:
//   bahdanau_tensor_cores   W_h h + W_s s_j       states x units / 32      the matrix product
//
// Some versions compute less: (h^T W) s_j instead of h^T (W s_j), and W [h; s_j] = W_h h + W_s s_j,
// whose first half is the same for all states.
//
//   ./course run day25 --only dot_fused
//   ./course inspect day25 --only dot_per_thread     which line wastes memory traffic
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"

namespace day25 {

using course::DeviceMatrix;
using course::DeviceSpan;
using course::Sum;

// --- Dot product ---------------------------------------------------------------------------------

constexpr int kScoreThreads = 256;

// The number of this thread in the grid.
__device__ inline std::size_t element() {
    return static_cast<std::size_t>(blockIdx.x) * kScoreThreads + threadIdx.x;
}

// Idea: one operation at a time, as array languages compute. First all products:
// products[j width + i] = h[i] S[j][i], a thread for each.
// Cost removed: the loop of the CPU.
// Still limits it: memory. As many products are written as states were read, and add_rows reads
// them.
__global__ void multiply_states(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                DeviceSpan<float> products) {
    const std::size_t i = element();
    if (i >= products.size()) return;
    const std::size_t width = states.cols();
    products[i] = hidden[i % width] * states(i / width, i % width);
}

// Idea: the second operation. A thread adds up the products of one state.
// Cost removed: atomic additions.
// Still limits it: adjacent threads read addresses a row apart, which costs a 32-byte sector for
// each float.
__global__ void add_rows(DeviceSpan<const float> products, std::size_t width, DeviceSpan<float> scores) {
    const std::size_t row = element();
    if (row >= scores.size()) return;
    float sum = 0;
    for (std::size_t i = 0; i < width; ++i)
        sum += products[row * width + i];
    scores[row] = sum;
}

// Idea: both operations in one loop, a thread for each score.
// Cost removed: the products in memory, written and read again.
// Still limits it: the same sectors as in add_rows, and few threads: one for each state.
__global__ void score_per_thread(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                 DeviceSpan<float> scores) {
    const std::size_t row = element();
    if (row >= scores.size()) return;
    float sum = 0;
    for (std::size_t i = 0; i < states.cols(); ++i)
        sum += hidden[i] * states(row, i);
    scores[row] = sum;
}

constexpr int kWarpsPerBlock = 8;

// Idea: a warp for each row. Adjacent lanes multiply adjacent elements, WIDTH at a time, and add up
// with shuffles. This is `matrix` times `vector`; Luong and Bahdanau use it, too.
// Cost removed: 7 of 8 floats of each sector that were loaded and not used; idle SMs: 32 threads
// per score.
// Still limits it: memory. A few rows cannot fill the GPU.
template <int WIDTH>
__global__ void __launch_bounds__(kWarpsPerBlock* course::kWarpSize)
    multiply_rows(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector, DeviceSpan<float> out) {
    const std::size_t row =
        static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / course::kWarpSize;
    if (row >= matrix.rows()) return;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const float* const values = matrix.data() + row * matrix.leading_dimension();
    float sum = 0;
    for (std::size_t i = lane * WIDTH; i < matrix.cols(); i += course::kWarpSize * WIDTH) {
        const auto x = course::Pack<float, WIDTH>::load(values + i);
        const auto y = course::Pack<float, WIDTH>::load(vector.data() + i);
        for (int w = 0; w < WIDTH; ++w)
            sum += x.value[w] * y.value[w];
    }
    sum = course::warp_reduce(sum, Sum{});
    if (lane == 0) out[row] = sum;
}

// --- Luong ---------------------------------------------------------------------------------------

// luong_states_first has no kernel of its own: multiply_matrices (attention.cuh) computes S W^T,
// then multiply_rows the dot products with h.

constexpr int kColumnWarps = 8;

// Idea: h^T W first, so that no matrix is multiplied by a matrix. A block has 32 adjacent columns,
// a lane for each; its warps divide the rows among them.
// Cost removed: the product S W^T: states x hidden x width multiply-adds become (states + hidden) x
// width.
// Still limits it: latency. 512 columns are 16 blocks, and a GPU has more than 100 SMs.
__global__ void __launch_bounds__(kColumnWarps* course::kWarpSize)
    vector_times_matrix(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                        DeviceSpan<float> out) {
    __shared__ float parts[kColumnWarps][course::kWarpSize];
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const unsigned warp = threadIdx.x / course::kWarpSize;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * course::kWarpSize + lane;
    float sum = 0;
    if (col < matrix.cols())
        for (std::size_t row = warp; row < matrix.rows(); row += kColumnWarps)
            sum += vector[row] * matrix(row, col);
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || col >= matrix.cols()) return;
    for (int i = 1; i < kColumnWarps; ++i)
        sum += parts[i][lane];
    out[col] = sum;
}

// From compute capability 9.0 on, a kernel may start while the previous one runs (programmatic
// dependent launch): allow_next() allows it, and wait_for_previous() returns when the previous
// kernel has ended and its stores are visible.
__device__ inline void allow_next() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ inline void wait_for_previous() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

constexpr int kNarrow = 8;  // columns: the 32 bytes of a sector
constexpr int kNarrowThreads = 512;

// Idea: a block has eight columns instead of 32, and twice as many threads.
// Cost removed: idle SMs, with four times as many blocks. A thread has an eighth of the rows, so
// that all of its loads can be in flight at the same time.
// Still limits it: the kernel that computes the dot products waits until the last block has ended.
__global__ void __launch_bounds__(kNarrowThreads)
    vector_times_narrow(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                        DeviceSpan<float> out) {
    __shared__ float parts[kNarrowThreads / course::kWarpSize][kNarrow];
    allow_next();
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * kNarrow + lane % kNarrow;
    float sum = 0;
    if (col < matrix.cols()) {
#pragma unroll 8
        for (std::size_t row = threadIdx.x / kNarrow; row < matrix.rows(); row += kNarrowThreads / kNarrow)
            sum += vector[row] * matrix(row, col);
    }
    // Lanes kNarrow apart have the same column.
    for (int distance = course::kWarpSize / 2; distance >= kNarrow; distance /= 2)
        sum += __shfl_xor_sync(course::kWholeWarp, sum, distance);
    if (lane < kNarrow) parts[threadIdx.x / course::kWarpSize][lane] = sum;
    __syncthreads();
    if (threadIdx.x >= kNarrow || col >= matrix.cols()) return;
    for (int i = 1; i < kNarrowThreads / course::kWarpSize; ++i)
        sum += parts[i][lane];
    out[col] = sum;
}

constexpr int kAhead = 4;  // packs of a lane: the first 512 columns of a row, in float4s

// Idea: multiply_rows that starts while h^T W is computed. A warp loads the start of its row
// before it waits for the vector.
// Cost removed: the gap between two kernels, and the latency of the loads after it.
// Still limits it: memory.
template <int WIDTH>
__global__ void __launch_bounds__(kWarpsPerBlock* course::kWarpSize)
    multiply_rows_early(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector,
                        DeviceSpan<float> out) {
    using Pack = course::Pack<float, WIDTH>;
    constexpr std::size_t kStep = course::kWarpSize * WIDTH;
    const std::size_t row =
        static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / course::kWarpSize;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const std::size_t cols = row < matrix.rows() ? matrix.cols() : 0;
    const float* const values = matrix.data() + row * matrix.leading_dimension();
    Pack ahead[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
        const std::size_t i = lane * WIDTH + a * kStep;
        if (i < cols) ahead[a] = Pack::load(values + i);
    }
    wait_for_previous();
    float sum = 0;
    const auto add = [&](std::size_t i, const Pack& x) {
        const auto y = Pack::load(vector.data() + i);
        for (int w = 0; w < WIDTH; ++w)
            sum += x.value[w] * y.value[w];
    };
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
        const std::size_t i = lane * WIDTH + a * kStep;
        if (i < cols) add(i, ahead[a]);
    }
    for (std::size_t i = lane * WIDTH + kAhead * kStep; i < cols; i += kStep)
        add(i, Pack::load(values + i));
    sum = course::warp_reduce(sum, Sum{});
    if (lane == 0 && row < matrix.rows()) out[row] = sum;
}

}  // namespace day25
