// The host side of a step: which grid, and which kernel where rows are not aligned. The same for
// all steps, so that a step's file holds its kernels and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/bench/kernel_resources.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "sgemm.hpp"

namespace gemm {

// BM x BN tiles that cover an m x n matrix.
template <int BM, int BN>
std::size_t tiles_in(std::size_t m, std::size_t n) {
    return course::ceil_div<std::size_t>(m, BM) * course::ceil_div<std::size_t>(n, BN);
}

// Those of C. Throws std::invalid_argument when a grid cannot have that many blocks.
template <int BM, int BN>
unsigned tiles_of(const Sgemm& gemm) {
    return course::blocks_for(tiles_in<BM, BN>(gemm.m(), gemm.n()), 1);
}

// Do the rows of all three matrices start at a multiple of 16 bytes, as a float4 requires?
inline bool rows_are_aligned(const Sgemm& gemm) {
    const auto aligned = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) &&
               (matrix.leading_dimension() % 4 == 0 || matrix.rows() <= 1);
    };
    return aligned(gemm.a) && aligned(gemm.b) && aligned(gemm.c);
}

// beyond/unaligned.cu: what steps 6 to 11 launch where rows are not aligned. `gemm` is checked.
void launch_unaligned(const Sgemm& gemm, cudaStream_t stream);

// A block of THREADS threads for each BM x BN tile of C.
template <int BM, int BN, int THREADS, auto KERNEL, bool NEEDS_ALIGNED_ROWS = false>
Kernel block_per_tile() {
    constexpr auto launch = [](const Sgemm& given, cudaStream_t stream) {
        const Sgemm gemm = checked(given);
        const unsigned tiles = tiles_of<BM, BN>(gemm);
        if (tiles == 0) return;
        if (NEEDS_ALIGNED_ROWS && !rows_are_aligned(gemm)) return launch_unaligned(gemm, stream);
        course::launch(KERNEL, {.grid = tiles, .block = THREADS, .stream = stream}, gemm);
    };
    return {.launch = launch, .resources = [] { return course::resources_of(KERNEL, THREADS); }};
}

// The same for a kernel that moves float4.
template <int BM, int BN, int THREADS, auto KERNEL>
Kernel block_per_tile_of_aligned_rows() {
    return block_per_tile<BM, BN, THREADS, KERNEL, true>();
}

}  // namespace gemm
