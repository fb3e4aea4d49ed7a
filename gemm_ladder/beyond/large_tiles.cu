#include "tile_kernels.cuh"

namespace gemm {

std::vector<TileKernels> large_tiles() {
    return {make_tile<TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>, 1>("128x256x8"),
            make_tile<TileShape<128, 128, 8, 64, 64, 16, 8, 4>, 2>("128x128x8"),
            make_tile<TileShape<64, 128, 16, 32, 64, 8, 8, 3, 1>, 3>("64x128x16")};
}

}  // namespace gemm
