#include "tile_kernels.cuh"

namespace gemm {

std::vector<TileKernels> small_tiles() {
    return {make_tile<TileShape<64, 64, 16, 32, 64, 8, 8, 3, 1>, 6>("64x64x16"),
            make_tile<TileShape<128, 32, 16, 32, 32, 8, 4, 3, 1>, 4>("128x32x16"),
            make_tile<TileShape<32, 128, 16, 32, 32, 8, 4, 3, 1>, 4>("32x128x16"),
            make_tile<TileShape<32, 32, 16, 16, 32, 4, 4, 4, 1>, 8>("32x32x16")};
}

}  // namespace gemm
