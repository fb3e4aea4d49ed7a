// How a step's kernel is launched: the same for all of them, so that a step's file holds its kernel and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/bench/kernel_resources.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
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

// Do the rows of all three matrices begin at a multiple of 16 bytes, as a float4 wants it?
inline bool rows_are_aligned(const Sgemm& gemm) {
    const auto aligned = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) &&
               (matrix.leading_dimension() % 4 == 0 || matrix.rows() <= 1);
    };
    return aligned(gemm.a) && aligned(gemm.b) && aligned(gemm.c);
}

// Are the rows aligned, and whole numbers of float4 too? Then no float4 lies partly outside.
inline bool rows_are_whole_packs(const Sgemm& gemm) {
    return rows_are_aligned(gemm) && gemm.n() % 4 == 0 && gemm.k() % 4 == 0 &&
           gemm.a.leading_dimension() % 4 == 0 && gemm.b.leading_dimension() % 4 == 0;
}

// More than 48 KB of dynamic shared memory must be asked for.
template <class Function>
void allow_shared(Function* kernel, std::size_t bytes) {
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

// A block of THREADS threads with SHARED bytes of dynamic shared memory for each BM x BN tile of C. ALIGNED runs where IS_ALIGNED says
// so, ANY everywhere else.
template <int BM, int BN, int THREADS, auto ALIGNED, auto ANY = ALIGNED, std::size_t SHARED = 0,
          auto IS_ALIGNED = rows_are_aligned>
struct BlockPerTile {
    static void launch(const Sgemm& given, cudaStream_t stream) {
        const Sgemm gemm = checked(given);
        const unsigned tiles = tiles_of<BM, BN>(gemm);
        if (tiles == 0) return;
        const auto kernel = IS_ALIGNED(gemm) ? ALIGNED : ANY;
        if (SHARED != 0) allow_shared(kernel, SHARED);
        kernel<<<tiles, THREADS, SHARED, stream>>>(gemm);
        CUDA_CHECK_LAUNCH();
    }

    static course::KernelResources resources() {
        if (SHARED != 0) allow_shared(ALIGNED, SHARED);
        return course::resources_of(ALIGNED, THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources}; }
};

}  // namespace gemm
