// Step 12 is in 12_multi_stage.cuh. Here it gets its tile.
#include "beyond.hpp"
#include "tile_kernels.cuh"

namespace gemm {

Kernel multi_stage() {
    // BM, BN, BK; WM, WN; TM, TN; stages; the k before which copies are issued
    return MultiStage<TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>, 1>::kernel();
}

}  // namespace gemm
