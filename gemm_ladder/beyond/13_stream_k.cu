// Step 13 is in 13_stream_k.cuh. Here it gets its tile.
#include "beyond.hpp"
#include "tile_kernels.cuh"

namespace gemm {

Kernel stream_k() {
    // BM, BN, BK; WM, WN; TM, TN; stages; the k before which copies are issued
    return StreamK<TileShape<64, 128, 16, 32, 64, 8, 8, 3, 1>, 3>::kernel();
}

}  // namespace gemm
