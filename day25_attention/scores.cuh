// Day 25, part 1: scoring functions. How well does each state s_j of an encoder match the state h
// of a decoder? S has a state per row; every row gets a score.
// PMPP chapters 5, 6 and 10 (both editions), 20 (5th edition).
//
//   version                 formula                stored in between         what limits it
//   dot_separate            h . s_j                states x width            few threads, a sector per float
//   dot_fused               h . s_j                -                         launch; at last memory: S, once
//   luong_states_first      h^T (W s_j)            states x hidden           the matrix product
//   luong_hidden_first      (h^T W) s_j            width                     latency: few blocks for h^T W
//   bahdanau_concatenated   v . tanh(W [h; s_j])   states x (hidden+width)   the product: shared memory
//   bahdanau_split          W_h h + W_s s_j        states x units            the product: shared memory
//
// The second version of each pair gives the same scores with less work: nothing is stored in
// between, h^T W is computed once for all states, and W [h; s_j] = W_h h + W_s s_j, whose first
// half is the same for all states. Five more versions are in beyond/.
//
// Each kernel is followed by its launch. scores.cu checks arguments and calls the launches of a
// version one after the other.
//
//   ./course run day25 --only dot_fused
//   ./course inspect day25 --only dot_separate       which line wastes memory traffic
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
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
// Still limits it: the launch, with 2,048 rows of 512 columns (counters: no unit above 42 %, 5 µs;
// the products stay in L2). As many are written as states were read, and add_rows reads them.
__global__ void multiply_states(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                DeviceSpan<float> products) {
    const std::size_t i = element();
    if (i >= products.size()) return;
    const std::size_t width = states.cols();
    products[i] = hidden[i % width] * states(i / width, i % width);
}

inline void launch_multiply_states(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                   DeviceSpan<float> products, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(products.size(), kScoreThreads);
    multiply_states<<<grid, kScoreThreads, 0, stream>>>(hidden, states, products);
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

inline void launch_add_rows(DeviceSpan<const float> products, std::size_t width, DeviceSpan<float> scores,
                            cudaStream_t stream) {
    const unsigned grid = course::blocks_for(scores.size(), kScoreThreads);
    add_rows<<<grid, kScoreThreads, 0, stream>>>(products, width, scores);
}

constexpr int kWarpsPerBlock = 8;

// Idea: a warp for each row. Adjacent lanes multiply adjacent elements, WIDTH at a time, and add up
// with shuffles. This is `matrix` times `vector`; Luong and Bahdanau use it, too.
// Cost removed: 7 of 8 floats of each sector that were loaded and not used; idle SMs: 32 threads
// per score.
// Still limits it: the launch with 2,048 rows of 512 columns, which cannot fill the GPU: the kernel
// takes 3.6 us, and no unit is above 15 % (counters). With enough rows, memory.
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

// WIDTH 4 needs 16-byte aligned rows of whole float4s, and an aligned vector.
template <int WIDTH>
void launch_multiply_rows(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector,
                          DeviceSpan<float> out, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(matrix.rows(), kWarpsPerBlock);
    multiply_rows<WIDTH><<<grid, kWarpsPerBlock * course::kWarpSize, 0, stream>>>(matrix, vector, out);
}

// --- Luong ---------------------------------------------------------------------------------------

// luong_states_first has no kernel of its own: multiply_matrices (attention.cuh) computes S W^T,
// then multiply_rows the dot products with h.

constexpr int kColumnWarps = 8;

// Idea: h^T W first, so that no matrix is multiplied by a matrix. A block has 32 adjacent columns,
// a lane for each; its warps divide the rows among them.
// Cost removed: the product S W^T: states x hidden x width multiply-adds become (states + hidden) x
// width.
// Still limits it: latency. 512 columns are 16 blocks, and a GPU has more than 100 SMs. Counters:
// the warps spend 69 % of their time on loads, and no unit is above 10 %.
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

inline void launch_vector_times_matrix(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                                       DeviceSpan<float> out, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(matrix.cols(), course::kWarpSize);
    vector_times_matrix<<<grid, kColumnWarps * course::kWarpSize, 0, stream>>>(vector, matrix, out);
}

// --- Bahdanau ------------------------------------------------------------------------------------

// Idea: store [h; s_j] for every state, so that one product multiplies all of them by W.
// Cost removed: none. This is the formula as it stands.
// Still limits it: issue slots (counters: 62 % busy): a thread divides to find its row and column,
// and copies one float. And then the product multiplies W_h by the same h for every state.
__global__ void concatenate(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                            DeviceMatrix<float> out) {
    const std::size_t i = element();
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    out(row, col) = col < hidden.size() ? hidden[col] : states(row, col - hidden.size());
}

inline void launch_concatenate(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                               DeviceMatrix<float> out, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(out.rows() * out.cols(), kScoreThreads);
    concatenate<<<grid, kScoreThreads, 0, stream>>>(hidden, states, out);
}

// Idea: tanh, the product with v and the sum in one pass, a warp for each state. bahdanau_split
// passes W_h h in `add`, so that W_h meets one vector instead of a matrix; otherwise `add` is
// empty.
// Cost removed: the results of tanh in memory; with `add`, half of the matrix product.
// Still limits it: the launch and latency (counters: 4 to 6 µs, no unit above 25 %). It reads the
// result that the product has just written, from L2.
__global__ void __launch_bounds__(kScoreThreads)
    weigh_tanh(DeviceMatrix<const float> in, DeviceSpan<const float> add, DeviceSpan<const float> v,
               DeviceSpan<float> scores) {
    const std::size_t row = element() / course::kWarpSize;
    if (row >= in.rows()) return;
    float sum = 0;
    for (std::size_t i = threadIdx.x % course::kWarpSize; i < in.cols(); i += course::kWarpSize)
        sum += v[i] * tanhf(in(row, i) + (add.empty() ? 0.0f : add[i]));
    sum = course::warp_reduce(sum, Sum{});
    if (threadIdx.x % course::kWarpSize == 0) scores[row] = sum;
}

inline void launch_weigh_tanh(DeviceMatrix<const float> in, DeviceSpan<const float> add,
                              DeviceSpan<const float> v, DeviceSpan<float> scores, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(in.rows() * course::kWarpSize, kScoreThreads);
    weigh_tanh<<<grid, kScoreThreads, 0, stream>>>(in, add, v, scores);
}

}  // namespace day25
