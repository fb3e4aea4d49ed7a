// Bug hunt "scale_rows": a factor for every row.
//
//   out(r, c) = factors[r] in(r, c)
//
//   ./course run bug_hunts --only scale_rows
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kTile = 32;

// Idea: a block for each tile of 32 x 32 elements, a thread for each element.
// Cost removed: the loops of the CPU.
// Still limits it: memory.
__global__ void scale_tile(DeviceMatrix<const float> in, DeviceSpan<const float> factors,
                           DeviceMatrix<float> out) {
    const std::size_t tiles_across = course::ceil_div<std::size_t>(in.cols(), kTile);
    const std::size_t row = blockIdx.x / tiles_across * kTile + threadIdx.y;
    const std::size_t col = blockIdx.x % tiles_across * kTile + threadIdx.x;
    if (row < in.rows() && col < in.cols()) out(row, col) = factors[row] * in(row, col);
}

}  // namespace

void scale_rows(DeviceMatrix<const float> in, DeviceSpan<const float> factors, DeviceMatrix<float> out,
                cudaStream_t stream) {
    require_shape("scale_rows", "out", out, {in.rows(), in.cols()});
    require_size("scale_rows", "factors", factors, in.rows());
    require_apart("scale_rows", in, out);
    require_apart("scale_rows", as_row(factors), out);
    const unsigned blocks = course::blocks_for(
        course::ceil_div<std::size_t>(in.rows(), kTile) * course::ceil_div<std::size_t>(in.cols(), kTile), 1);
    if (blocks == 0) return;
    scale_tile<<<blocks, dim3(kTile, kTile), 0, stream>>>(in, factors, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
