// The host side of kernels in beyond/ that give each tile of C a block.
#pragma once

#include "../launch.hpp"

namespace gemm {

// Are rows aligned, and do all of them consist of whole float4? Then every float4 is in range or
// out of range as a whole.
inline bool rows_are_whole_packs(const Sgemm& gemm) {
    return rows_are_aligned(gemm) && gemm.n() % 4 == 0 && gemm.k() % 4 == 0 &&
           gemm.a.leading_dimension() % 4 == 0 && gemm.b.leading_dimension() % 4 == 0;
}

// A block of THREADS threads with SHARED bytes of dynamic shared memory for each BM x BN tile of C.
// WHOLE_PACKS runs where rows_are_whole_packs(), ANY everywhere else.
template <int BM, int BN, int THREADS, auto WHOLE_PACKS, auto ANY, std::size_t SHARED>
struct BlockPerTile {
    static void launch(const Sgemm& given, cudaStream_t stream) {
        const Sgemm gemm = checked(given);
        const unsigned tiles = tiles_of<BM, BN>(gemm);
        if (tiles == 0) return;
        course::launch_early(rows_are_whole_packs(gemm) ? WHOLE_PACKS : ANY, {tiles, THREADS, SHARED, stream},
                             gemm);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(WHOLE_PACKS, SHARED);
        return course::resources_of(WHOLE_PACKS, THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources}; }
};

}  // namespace gemm
