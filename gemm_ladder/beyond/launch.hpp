// The host side of kernels in beyond/ that give each tile of C a block.
#pragma once

#include <type_traits>

#include "../launch.hpp"
#include "common/check/check.hpp"
#include "tiles.hpp"

namespace gemm {

// Is the GPU of compute capability 9.0 or above, and the code built for it? Code built for an older
// one, which the driver translates, does not wait in wait_for_kernel_in_front(). All kernels of
// versions 12 to 15 are built for the same GPUs, so the first that is asked answers for all.
template <class... Parameters>
bool may_start_early(void (*kernel)(Parameters...)) {
    if (current_gpu().capability < 90) return false;
    static const bool built_for_it = [&] {
        cudaFuncAttributes attributes{};
        CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
        return attributes.ptxVersion >= 90;
    }();
    return built_for_it;
}

// As course::launch(). Where they may_start_early(), blocks may start while the kernel in front
// ends (programmatic dependent launch, day 41): `kernel` calls wait_for_kernel_in_front() first.
template <class... Parameters>
void launch_early(void (*kernel)(Parameters...), const course::LaunchConfig& config,
                  const std::type_identity_t<Parameters>&... arguments) {
    if (may_start_early(kernel)) {
        course::launch_early(kernel, config, arguments...);
    } else {
        course::launch(kernel, config, arguments...);
    }
}

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
        launch_early(rows_are_whole_packs(gemm) ? WHOLE_PACKS : ANY, {tiles, THREADS, SHARED, stream}, gemm);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(WHOLE_PACKS, SHARED);
        return course::resources_of(WHOLE_PACKS, THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources}; }
};

}  // namespace gemm
