// Step 13: equal shares for all blocks.
//
// Change:     as many blocks as run at the same time; each does the same number of steps of BK columns, across the borders of tiles.
//             Where blocks share a tile, their sums go through scratch memory (stream_k.cuh).
// Why:        the last round of blocks is as full as the others, for every shape.
// Prediction: 4096^3: the loop loses no multiprocessor, where step 12 loses 3 %; but shared tiles cost memory traffic and waiting. And a
//             tile of 64 x 128 with 8 x 8 results asks shared memory for all that it has: slower than step 12 on squares, faster on shapes
//             of few tiles and a deep K.
// Counter:    sm__cycles_active.avg over sm__cycles_elapsed.max nears 1; dram__bytes_write.sum.
// Measured:   about 51 TFLOP/s, a little less than step 12 on this shape.
// Next:       which tile, and which of the two ways, depends on the shape.
#include "beyond.hpp"
#include "stream_k.cuh"

namespace gemm {

Kernel stream_k() {
    return StreamK<TileShape<64, 128, 16, 32, 64, 8, 8, 3, 1>, 3>::kernel();
}

}  // namespace gemm
