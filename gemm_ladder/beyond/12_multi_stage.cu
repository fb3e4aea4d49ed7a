// Step 12: asynchronous copies, several stages.
#include "beyond.hpp"
#include "multi_stage.cuh"

namespace gemm {

Kernel multi_stage() {
    return MultiStage<TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>, 1>::kernel();
}

}  // namespace gemm
