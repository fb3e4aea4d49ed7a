// Bug hunt "transpose": rows become columns.
//
//   out(c, r) = in(r, c)
//
//   ./course run bug_hunts --only transpose
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kTile = 32;

// Idea: a tile goes through shared memory: read from `in` along rows, written to `out` along rows,
// turned over in between.
// Cost removed: writing to global memory along columns, a sector for each element.
// Still limits it: memory.
__global__ void transpose_tile(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    __shared__ float tile[kTile][kTile + 1];  // a row longer than the banks: a column lies in 32 of them
    const std::size_t tiles_across = course::ceil_div<std::size_t>(in.cols(), kTile);
    const std::size_t top = blockIdx.x / tiles_across * kTile;
    const std::size_t left = blockIdx.x % tiles_across * kTile;

    if (top + threadIdx.y < in.rows() && left + threadIdx.x < in.cols())
        tile[threadIdx.y][threadIdx.x] = in(top + threadIdx.y, left + threadIdx.x);
    __syncthreads();  // the tile is complete
    if (left + threadIdx.y < out.rows() && top + threadIdx.x < out.cols())
        out(left + threadIdx.y, top + threadIdx.x) = tile[threadIdx.x][threadIdx.y];
}

}  // namespace

void transpose(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("transpose", "out", out, {in.cols(), in.rows()});
    require_apart("transpose", in, out);
    const unsigned blocks = course::blocks_for(
        course::ceil_div<std::size_t>(in.rows(), kTile) * course::ceil_div<std::size_t>(in.cols(), kTile), 1);
    if (blocks == 0) return;
    transpose_tile<<<blocks, dim3(kTile, kTile), 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
