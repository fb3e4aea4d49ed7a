// Day 25, beyond: Luong's scores with more blocks for h^T W (luong_narrow), and with a second
// kernel that starts while the first one runs (luong_early).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/launch.hpp"
#include "scores.cuh"

namespace day25 {

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
// Still limits it: launches. The kernel that computes the dot products waits until the last block
// has ended, and both take less than 5 us (counters).
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

inline void launch_vector_times_narrow(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                                       DeviceSpan<float> out, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(matrix.cols(), kNarrow);
    vector_times_narrow<<<grid, kNarrowThreads, 0, stream>>>(vector, matrix, out);
}

constexpr int kAhead = 4;  // packs of a lane: the first 512 columns of a row, in float4s

// Idea: multiply_rows that starts while h^T W is computed. A warp loads the start of its row
// before it waits for the vector.
// Cost removed: the gap between two kernels, and the latency of the loads after it.
// Still limits it: launches and latency. Counters of the two kernels for 2,048 states, which L2
// holds: 4.7 and 3.3 us, and no unit is above 13 %.
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

// launch_early: cudaLaunchKernelEx with the attribute for programmatic dependent launches.
template <int WIDTH>
void launch_multiply_rows_early(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector,
                                DeviceSpan<float> out, cudaStream_t stream) {
    course::launch_early(multiply_rows_early<WIDTH>,
                         {.grid = course::blocks_for(matrix.rows(), kWarpsPerBlock),
                          .block = kWarpsPerBlock * course::kWarpSize,
                          .stream = stream},
                         matrix, vector, out);
}

}  // namespace day25
