// The host side of the kernels in beyond/ that give each tile of C a block.
#pragma once

#include "../launch.hpp"

namespace gemm {

// Are the rows aligned, and whole numbers of float4 too? Then no float4 is partly out of range.
inline bool rows_are_whole_packs(const Sgemm& gemm) {
    return rows_are_aligned(gemm) && gemm.n() % 4 == 0 && gemm.k() % 4 == 0 &&
           gemm.a.leading_dimension() % 4 == 0 && gemm.b.leading_dimension() % 4 == 0;
}

// A block of THREADS threads with SHARED bytes of dynamic shared memory for each BM x BN tile of C.
// ALIGNED runs where IS_ALIGNED is true, ANY everywhere else.
template <int BM, int BN, int THREADS, auto ALIGNED, auto ANY, std::size_t SHARED, auto IS_ALIGNED>
struct BlockPerTile {
    static void launch(const Sgemm& given, cudaStream_t stream) {
        const Sgemm gemm = checked(given);
        const unsigned tiles = tiles_of<BM, BN>(gemm);
        if (tiles == 0) return;
        course::launch(IS_ALIGNED(gemm) ? ALIGNED : ANY, {tiles, THREADS, SHARED, stream}, gemm);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(ALIGNED, SHARED);
        return course::resources_of(ALIGNED, THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources}; }
};

}  // namespace gemm
