// Many products of BF16 or FP16 matrices at once, on tensor cores: A and B of __nv_bfloat16 or
// __half, sums and C in single precision. Otherwise as in fused_matmul.hpp, which has the
// conventions and the reference.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <span>

#include "common/bench/version.hpp"
#include "fused_matmul.hpp"

namespace day45 {

using Bfloat16Matmul = BatchedMatmulOf<__nv_bfloat16>;

// Queues the products on `stream`. As Launcher of fused_matmul.hpp; m, n and k at most 2^31 - 1024.
using Bfloat16Launcher = void (*)(const Bfloat16Matmul& matmul, cudaStream_t stream);

// "tile_each", "pipelined", "wgmma". Their constraint names what they need of a GPU.
using BatchedBfloat16 = course::Version<Bfloat16Launcher, Shape>;
std::span<const BatchedBfloat16> bfloat16_versions();
// Each tile that "wgmma" chooses from, as a version of its own.
std::span<const BatchedBfloat16> wgmma_tiles();

using HalfMatmul = BatchedMatmulOf<__half>;
using HalfLauncher = void (*)(const HalfMatmul& matmul, cudaStream_t stream);

// "tile_each", "pipelined": the same kernels.
using BatchedHalf = course::Version<HalfLauncher, Shape>;
std::span<const BatchedHalf> half_versions();

}  // namespace day45
