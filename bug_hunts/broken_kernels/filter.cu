// Bug hunt "filter": a 3 x 3 filter of a matrix.
// This file compiles, looks right, and is wrong. Find the place.
//
//   out(r, c) = the sum of weights[3 i + j] in(r + i - 1, c + j - 1), i and j from 0 to 2
//
//   ./course check bug_hunts/filter     what goes wrong?
//   ./course hint bug_hunts/filter
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

// Indices are unsigned: row 0 minus 1 wraps to the largest number, which is out of range, too.
__device__ float element_or_zero(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col) {
    return row < matrix.rows() && col < matrix.cols() ? matrix(row, col) : 0.0f;
}

// Idea: a thread for each element of the result; adjacent threads have adjacent columns.
// Cost removed: the two outer loops of the CPU.
// Still limits it: nine loads for each element, eight of which other threads make as well.
__global__ void filter_3x3(DeviceMatrix<const float> in, DeviceSpan<const float> weights,
                           DeviceMatrix<float> out) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();

    float sum = 0;
    std::size_t next = 0;
    for (int right = -1; right <= 1; ++right) {
        for (int down = -1; down <= 1; ++down)
            sum += weights[next++] * element_or_zero(in, row + down, col + right);
    }
    out(row, col) = sum;
}

}  // namespace

void filter(DeviceMatrix<const float> in, DeviceSpan<const float> weights, DeviceMatrix<float> out,
            cudaStream_t stream) {
    require_shape("filter", "out", out, {in.rows(), in.cols()});
    require_size("filter", "weights", weights, 9);
    require_apart("filter", in, out);
    require_apart("filter", as_row(weights), out);
    const unsigned blocks = course::blocks_for(out.rows() * out.cols(), kBlock);
    if (blocks == 0) return;
    filter_3x3<<<blocks, kBlock, 0, stream>>>(in, weights, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
