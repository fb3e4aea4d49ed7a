#include "bulk_ring.cuh"
#include "bulk_ring.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace day11 {

void launch_bulk_ring(const float* in, float* out, const Grid& grid, const Star<1>& star,
                      cudaStream_t stream) {
    using Shape = RingShape<1>;
    using Planes = Ring<1, Shape::kRows, Shape::kWarps, Shape::kAhead>;
    const auto blocks = [](int cells, int of_block) {
        return static_cast<unsigned>(course::ceil_div(cells, of_block));
    };
    course::launch(stencil_bulk_ring<1, Shape::kRows, Shape::kWarps, Shape::kAhead, Shape::kBlocks>,
                   {.grid = dim3(blocks(grid.nx, kWarpCells), blocks(grid.ny, Planes::kTileRows),
                                 blocks(grid.nz, Shape::kPlanes)),
                    .block = dim3(course::kWarpSize, Shape::kWarps),
                    .shared_bytes = sizeof(BulkRing<Planes>),
                    .stream = stream},
                   in, out, grid, star, Shape::kPlanes);
}

}  // namespace day11
