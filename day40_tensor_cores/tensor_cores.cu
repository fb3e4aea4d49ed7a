// Day 40's host code: argument checks and the list of versions. The kernels and their launches are
// in tensor_cores.cuh and beyond/pipelines.cuh.
#include <string>
#include <vector>

#include "beyond/pipelines.cuh"
#include "common/check/check.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "tensor_cores.cuh"
#include "tensor_cores.hpp"

namespace day40 {
namespace {

// A version: its kernel, its launch and what a block of it needs. ALIGNMENT: of rows, where the
// kernel is to have kAligned.
template <class S, int STAGES>
struct Tiled {
    static constexpr int THREADS = S::THREADS, ALIGNMENT = 16;
    static constexpr std::size_t SHARED = STAGES * sizeof(Stage<S>);
};

template <class T>
struct WmmaGlobal {
    static constexpr int THREADS = 128, ALIGNMENT = 32;
    static constexpr std::size_t SHARED = 0;
    template <bool kAligned>
    static constexpr auto kernel = wmma_global<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_wmma_global<T, kAligned>;
};
template <class T>
struct WmmaShared : Tiled<WmmaShape<T>, 2> {
    template <bool kAligned>
    static constexpr auto kernel = wmma_shared<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_wmma_shared<T, kAligned>;
};
template <class T>
struct MmaSync : Tiled<SmallShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = mma_sync<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_mma_sync<T, kAligned>;
};
template <class T>
struct WarpTiles : Tiled<WarpTileShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = warp_tiles<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_warp_tiles<T, kAligned>;
};
template <class T>
struct Swizzled : Tiled<SwizzledShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = swizzled<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_swizzled<T, kAligned>;
};
template <class T>
struct MultiStage : Tiled<LargeShape<T>, kStages> {
    template <bool kAligned>
    static constexpr auto kernel = multi_stage<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_multi_stage<T, kAligned>;
};
template <class T>
struct FragmentsAhead : Tiled<LargeShape<T>, kStages> {
    template <bool kAligned>
    static constexpr auto kernel = fragments_ahead<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_fragments_ahead<T, kAligned>;
};

// L: one of the above.
template <class L, class T>
void launch(const Gemm<T>& unchecked, cudaStream_t stream) {
    const Gemm<T> gemm = checked("tensor_cores", unchecked);
    const auto& [a, b, c, alpha, beta] = gemm;
    if (c.rows() == 0 || c.cols() == 0) return;
    const auto aligned = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), L::ALIGNMENT) && matrix.leading_dimension() % 8 == 0;
    };
    const auto run = aligned(a) && aligned(b) ? L::template launch<true> : L::template launch<false>;
    run(a, b, make_output(c, alpha, beta), stream);
    CUDA_CHECK_LAUNCH();
}

template <class L>
course::KernelResources resources() {
    course::allow_shared_bytes(L::template kernel<true>, L::SHARED);
    return course::resources_of(L::template kernel<true>, L::THREADS, L::SHARED);
}

template <class L>
std::string constraint(const Shape&) {
    return course::why_no_tensor_cores(L::template kernel<true>, L::SHARED);
}

template <class L, class T>
KernelFor<T> kernel_for() {
    return {.launch = launch<L, T>,
            .why_not = [](const Gemm<T>&) { return std::string(); },
            .resources = resources<L>};
}

template <template <class> class L>
Version version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = {.half = kernel_for<L<__half>, __half>(),
                         .bfloat16 = kernel_for<L<__nv_bfloat16>, __nv_bfloat16>()},
            .work = course::half_matmul::work_of,
            .constraint = constraint<L<__half>>};
}

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = {
        version<WmmaGlobal>("wmma_global", "WMMA, fragments from global memory"),
        version<WmmaShared>("wmma_shared", "WMMA from shared memory, asynchronous copies"),
        version<MmaSync>("mma_sync", "ldmatrix and mma.sync, 16 x 16 results per warp"),
        version<WarpTiles>("warp_tiles", "64 x 32 results per warp"),
        version<Swizzled>("swizzled", "no bank conflicts"),
        version<MultiStage>("multi_stage", "two tiles in flight, 64 x 64 results per warp"),
        version<FragmentsAhead>("fragments_ahead", "fragments loaded 16 of K ahead of their products")};
    return list;
}

}  // namespace day40
