// The eleven steps; each has a file of its own, from 01_naive.cu on. Most steps that change several
// things have a kernel for each.
#pragma once

#include "../sgemm.hpp"

namespace gemm {

Kernel naive();
Kernel shared_memory();
Kernel thread_tile_1d();
Kernel larger_tile();
Kernel plain_loads();
Kernel thread_tile_2d();
Kernel register_fragments();
Kernel transposed();
Kernel fours();
Kernel vectorized();
Kernel two_stages();
Kernel double_buffering();
Kernel swizzle();
Kernel larger_thread_tile();
Kernel larger_bk();
Kernel one_check();
Kernel warp_tiling();
Kernel warp_tiling_swizzle();
Kernel split_k_alone();
Kernel split_k();
Kernel split_k_in_kernel();

}  // namespace gemm
