// Norms of the vectors between which distances are computed.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <stdexcept>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "common/tile/distance.hpp"

namespace course {
namespace {

constexpr int kThreads = 256;

__device__ float norm_of(Metric metric, float squared) {
    if (metric == Metric::kSquaredL2) return squared;
    return squared == 0 ? 0 : rsqrtf(squared);
}

constexpr int kOfWarp = 4;  // vectors

// For vectors that are rows of the matrices. One pass over data that the products read many times.
// Idea: a warp for a few vectors, whose elements are contiguous.
// Cost removed: uncoalesced loads; waiting for the loads of one short vector before those of the
// next are issued.
// Still limits it: memory.
template <class T>
__global__ void norms_of_rows(Metric metric, const Batch<const T> batch, float* norms) {
    const std::size_t vectors = batch.first.rows() * batch.count;
    const std::size_t warp = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarpSize;
    const std::size_t first = warp * kOfWarp;
    const T* rows[kOfWarp] = {};
    for (int v = 0; v < kOfWarp && first + v < vectors; ++v)
        rows[v] = &batch[(first + v) / batch.first.rows()]((first + v) % batch.first.rows(), 0);
    float sums[kOfWarp] = {};
    for (std::size_t col = threadIdx.x % kWarpSize; col < batch.first.cols(); col += kWarpSize) {
#pragma unroll
        for (int v = 0; v < kOfWarp; ++v) {
            const float x = rows[v] == nullptr ? 0.0f : static_cast<float>(rows[v][col]);
            sums[v] += x * x;
        }
    }
#pragma unroll
    for (int v = 0; v < kOfWarp; ++v) {
        const float sum = warp_reduce(sums[v], [](float a, float b) { return a + b; });
        if (threadIdx.x % kWarpSize == 0 && first + v < vectors) norms[first + v] = norm_of(metric, sum);
    }
}

// For vectors that are columns of the matrices.
// Idea: a block for 32 adjacent vectors, a lane for each, so that adjacent threads read adjacent
// elements. The warps divide the rows among them. Cost removed: uncoalesced loads; with few
// vectors, the latency of dependent loads.
// Still limits it: memory.
template <class T>
__global__ void norms_of_columns(Metric metric, const Batch<const T> batch, float* norms) {
    constexpr unsigned kWarps = kThreads / kWarpSize;
    __shared__ float parts[kWarps][kWarpSize];
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    const std::size_t vector = std::size_t{blockIdx.x} * kWarpSize + lane;
    const bool inside = vector < batch.first.cols() * batch.count;
    float sum = 0;
    if (inside) {
        const DeviceMatrix<const T> matrix = batch[vector / batch.first.cols()];
        const std::size_t rows = matrix.rows();
#pragma unroll 4
        for (std::size_t row = warp; row < rows; row += kWarps) {
            const auto x = static_cast<float>(matrix(row, vector % matrix.cols()));
            sum += x * x;
        }
    }
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || !inside) return;
    for (unsigned i = 1; i < kWarps; ++i)
        sum += parts[i][lane];
    norms[vector] = norm_of(metric, sum);
}

template <class T>
void launch_norms_of(Metric metric, const Batch<const T>& batch, bool of_rows, float* norms,
                     cudaStream_t stream) {
    const std::size_t vectors = (of_rows ? batch.first.rows() : batch.first.cols()) * batch.count;
    if (vectors == 0) return;
    if (of_rows) {
        const std::size_t warps = ceil_div<std::size_t>(vectors, kOfWarp);
        const unsigned grid = blocks_for(warps * kWarpSize, kThreads);
        norms_of_rows<T><<<grid, kThreads, 0, stream>>>(metric, batch, norms);
    } else {
        norms_of_columns<T><<<blocks_for(vectors, kWarpSize), kThreads, 0, stream>>>(metric, batch, norms);
    }
    CUDA_CHECK_LAUNCH();
}

}  // namespace

std::string name(Metric metric) {
    switch (metric) {
        case Metric::kDot:
            return "dot";
        case Metric::kSquaredL2:
            return "squared_l2";
        case Metric::kDifferences:
            return "differences";
        case Metric::kCosine:
            return "cosine";
    }
    throw std::invalid_argument("name: no such metric: " + std::to_string(static_cast<int>(metric)));
}

std::size_t norms_size(Metric metric, std::size_t m, std::size_t n, std::size_t count) {
    const bool needed = metric == Metric::kSquaredL2 || metric == Metric::kCosine;
    return needed ? (m + n) * count : 0;
}

template <class T>
void launch_norms(Metric metric, const OperandsOf<T>& operands, DeviceSpan<float> norms,
                  cudaStream_t stream) {
    const std::size_t needed = norms_size(metric, operands.m(), operands.n(), operands.count());
    require(norms.size() >= needed, "launch_norms: norms has ", norms.size(), " elements; expected at least ",
            needed);
    if (needed == 0) return;
    launch_norms_of(metric, operands.a, operands.op_a == Op::kNone, norms.data(), stream);
    launch_norms_of(metric, operands.b, operands.op_b == Op::kTranspose,
                    norms.data() + operands.m() * operands.count(), stream);
}

template void launch_norms(Metric, const OperandsOf<float>&, DeviceSpan<float>, cudaStream_t);
template void launch_norms(Metric, const OperandsOf<__half>&, DeviceSpan<float>, cudaStream_t);
template void launch_norms(Metric, const OperandsOf<__nv_bfloat16>&, DeviceSpan<float>, cudaStream_t);

}  // namespace course
