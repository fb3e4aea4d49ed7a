// What tf32_dispatcher.cu needs of step 16's kernel.
#pragma once

#include <string>

#include "../sgemm.hpp"

namespace gemm {

inline constexpr int kTf32Tile = 128;  // rows and columns of C, for each block
inline constexpr int kTf32Step = 32;   // columns of A

// Why the kernel cannot run here; "": it can.
std::string why_no_tf32_wgmma(const Shape& shape);

// `splits` blocks for each tile, or fewer where K has too few steps. `gemm` is checked; the rows
// of A and B start at multiples of 16 bytes, as TMA needs it.
void launch_tf32x3_wgmma(int splits, const Sgemm& gemm, cudaStream_t stream);
ScratchSize tf32x3_wgmma_scratch(const Shape& shape, int splits);

course::KernelResources tf32x3_wgmma_resources();

}  // namespace gemm
