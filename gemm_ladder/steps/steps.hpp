// The eleven steps; each has a file of its own, from 01_naive.cu on.
#pragma once

#include "../sgemm.hpp"

namespace gemm {

Kernel naive();
Kernel shared_memory();
Kernel thread_tile_1d();
Kernel thread_tile_2d();
Kernel register_fragments();
Kernel vectorized();
Kernel double_buffering();
Kernel swizzle();
Kernel warp_tiling();
Kernel warp_tiling_swizzle();

}  // namespace gemm
