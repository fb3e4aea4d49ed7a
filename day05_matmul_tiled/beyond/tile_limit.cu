#include "beyond/tile_limit.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day05 {
namespace {

constexpr int kTile = 32;  // as in matmul_tiled.cuh

std::size_t tiles(std::size_t extent) {
    return course::ceil_div<std::size_t>(extent, kTile);
}

// The barrier keeps the compiler from holding the tiles in registers.
__global__ void multiply_one_tile_again(std::size_t iterations, float* never) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    a_tile[ty][tx] = static_cast<float>(tx);
    b_tile[ty][tx] = static_cast<float>(ty);
    float sum = 0;
    for (std::size_t i = 0; i < iterations; ++i) {
        __syncthreads();
        for (int k = 0; k < kTile; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
    }
    // `never` is null, but the compiler does not know that, and so cannot remove the loop.
    if (never != nullptr) never[threadIdx.x] = sum;
}

}  // namespace

void launch_tile_limit(Shape shape, cudaStream_t stream) {
    if (shape.rows == 0 || shape.cols == 0) return;
    const unsigned blocks = course::blocks_for(tiles(shape.rows) * tiles(shape.cols), 1);
    multiply_one_tile_again<<<blocks, dim3(kTile, kTile), 0, stream>>>(tiles(shape.depth), nullptr);
    CUDA_CHECK_LAUNCH();
}

course::Work tile_limit_work(const Shape& shape) {
    const auto whole_tiles = [](std::size_t extent) { return static_cast<double>(tiles(extent) * kTile); };
    return {.flops = 2 * whole_tiles(shape.rows) * whole_tiles(shape.cols) * whole_tiles(shape.depth)};
}

}  // namespace day05
