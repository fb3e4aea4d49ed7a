// Products with a short K (for step 14).
//
// Change:     all of K is one tile: no loop over tiles, no pipeline. No float4 in global memory: a
//             warp stores 32 adjacent elements of a row at a time.
// Why:        C is by far larger than A and B, so the kernel is memory-bound: the stores of C are
//             the limit. Step 12 fills a pipeline for only one or two tiles of K. If rows are
//             unaligned, each of its lanes stores four adjacent elements one by one.
//
// A block of 256 threads computes 64 x 128 elements of C, a thread 8 rows of 4 columns that are 32
// apart. So a warp's stores are coalesced, whatever the alignment of the rows.
#include <stdexcept>
#include <string>

#include "../edges.cuh"
#include "launch.hpp"
#include "shallow.hpp"
#include "tile.cuh"

namespace gemm {
namespace {

constexpr int kRows = 64;
constexpr int kCols = 128;
constexpr int kThreads = 256;
constexpr int kDepth = static_cast<int>(kShallow);
constexpr int kRowsEach = kRows / (kThreads / 32);
constexpr int kColsEach = kCols / 32;

__global__ void __launch_bounds__(kThreads) sgemm_shallow(Sgemm gemm) {
    __shared__ __align__(16) float a[kDepth][kRows + 4];  // transposed; padded: fewer bank conflicts
    __shared__ float b[kDepth][kCols];
    wait_for_kernel_in_front();
    const int thread = static_cast<int>(threadIdx.x);
    const auto across = static_cast<unsigned>((gemm.n() + kCols - 1) / kCols);
    const std::size_t row = std::size_t{blockIdx.x / across} * kRows;
    const std::size_t col = std::size_t{blockIdx.x % across} * kCols;
#pragma unroll
    for (int i = thread; i < kRows * kDepth; i += kThreads)
        a[i % kDepth][i / kDepth] = load_or_zero(gemm.a, row + i / kDepth, i % kDepth);
#pragma unroll
    for (int i = thread; i < kDepth * kCols; i += kThreads)
        b[i / kCols][i % kCols] = load_or_zero(gemm.b, i / kCols, col + i % kCols);
    __syncthreads();

    const int first_row = thread / 32 * kRowsEach;
    const int lane = thread % 32;
    float sums[kRowsEach][kColsEach] = {};
    const int depth = static_cast<int>(gemm.k());
    for (int k = 0; k < depth; ++k) {
        float a_column[kRowsEach];
#pragma unroll
        for (int i = 0; i < kRowsEach; i += 4)
            load4(&a[k][first_row + i], &a_column[i]);
#pragma unroll
        for (int j = 0; j < kColsEach; ++j) {
            const float element = b[k][lane + j * 32];
#pragma unroll
            for (int i = 0; i < kRowsEach; ++i)
                sums[i][j] += a_column[i] * element;
        }
    }
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
        for (int j = 0; j < kColsEach; ++j)
            store(gemm, row + first_row + i, col + lane + j * 32, sums[i][j]);
    }
}

}  // namespace

bool is_worth_a_shallow_kernel(const Shape& shape) {
    return is_shallow(shape) && tiles_in<kRows, kCols>(shape.m, shape.n) >= course::multiprocessors() / 2;
}

void launch_shallow(const Sgemm& given, cudaStream_t stream) {
    const Sgemm gemm = checked(given);
    if (!is_shallow({gemm.m(), gemm.n(), gemm.k()})) {
        throw std::invalid_argument("launch_shallow: K is " + std::to_string(gemm.k()) +
                                    "; expected at most " + std::to_string(kShallow));
    }
    const unsigned tiles = tiles_of<kRows, kCols>(gemm);
    if (tiles == 0) return;
    course::launch_early(sgemm_shallow, {.grid = tiles, .block = kThreads, .stream = stream}, gemm);
}

}  // namespace gemm
