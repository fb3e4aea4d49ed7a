// Bug hunt "gradient": the backward pass of a convolution with stride 2. This file
// compiles, looks right, and is wrong. Find the place.
//
//   The forward pass: y(r, c) = the sum of weights[3 i + j] x(2 r + i - 1, 2 c + j - 1), i and j
//   from 0 to 2. `in` is the gradient with respect to y, and `out` the one with respect to x:
//
//   out(r, c) = the sum of weights[3 i + j] in((r + 1 - i) / 2, (c + 1 - j) / 2), over all i and j
//   for which both divisions are exact
//
//   ./course check bug_hunts/gradient     what goes wrong?
//   ./course hint bug_hunts/gradient
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;
constexpr int kTaps = 3;  // in each direction
constexpr int kStride = 2;
constexpr int kPadding = 1;

// Row -1 is a row too large: that of an unsigned number which has wrapped.
__device__ float element_or_zero(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col) {
    return row < matrix.rows() && col < matrix.cols() ? matrix(row, col) : 0.0f;
}

// Idea: a thread for each element of the result, which gathers its terms.
// Cost removed: the atomics of a scatter, where each element of `in` is added to nine of `out`.
// Still limits it: adjacent threads have terms for different weights, so warps diverge.
__global__ void gather_gradient(DeviceMatrix<const float> in, DeviceSpan<const float> weights,
                                DeviceMatrix<float> out) {
    const std::size_t element = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (element >= out.rows() * out.cols()) return;
    const auto row = static_cast<std::ptrdiff_t>(element / out.cols());
    const auto col = static_cast<std::ptrdiff_t>(element % out.cols());

    float sum = 0;
    for (int i = 0; i < kTaps; ++i) {
        const std::ptrdiff_t down = row + kPadding - i;
        if (down % kStride == 1) continue;  // between two steps of the filter
        for (int j = 0; j < kTaps; ++j) {
            const std::ptrdiff_t right = col + kPadding - j;
            if (right % kStride == 1) continue;
            sum += weights[i * kTaps + j] * element_or_zero(in, down / kStride, right / kStride);
        }
    }
    out(row, col) = sum;
}

}  // namespace

void gradient(DeviceMatrix<const float> in, DeviceSpan<const float> weights, DeviceMatrix<float> out,
              cudaStream_t stream) {
    require_shape("gradient", "out", out, {kStride * in.rows(), kStride * in.cols()});
    require_size("gradient", "weights", weights, kTaps * kTaps);
    require_apart("gradient", in, out);
    require_apart("gradient", as_row(weights), out);
    const unsigned blocks = course::blocks_for(out.rows() * out.cols(), kBlock);
    if (blocks == 0) return;
    gather_gradient<<<blocks, kBlock, 0, stream>>>(in, weights, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
