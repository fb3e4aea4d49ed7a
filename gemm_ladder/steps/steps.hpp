// The eleven steps; each has a file of its own, from 01_naive.cu on. The last one has two entries in the list.
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
Kernel split_k();
Kernel split_k_in_kernel();

}  // namespace gemm
