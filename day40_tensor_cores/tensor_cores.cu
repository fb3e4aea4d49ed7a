// Day 40's launchers: argument checks, the size of the grid, the list of versions. The kernels are
// in wmma.cuh, tensor_cores.cuh and pipelines.cuh.
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "pipelines.cuh"
#include "tensor_cores.cuh"
#include "tensor_cores.hpp"
#include "wmma.cuh"

namespace day40 {
namespace {

constexpr int kBand = 8;  // rows of tiles that are computed together, for the L2 cache

// What a launcher must know about a kernel. ALIGNMENT: of rows that are loaded 16 bytes at a time.
template <class S, int STAGES>
struct Tiled {
    static constexpr int BM = S::BM, BN = S::BN, THREADS = S::THREADS, ALIGNMENT = 16;
    static constexpr std::size_t SHARED = STAGES * sizeof(Stage<S>);
};

template <class T>
struct WmmaGlobal {
    static constexpr int BM = 32, BN = 32, THREADS = 128, ALIGNMENT = 32;
    static constexpr std::size_t SHARED = 0;
    template <bool kAligned>
    static constexpr auto kernel = wmma_global<T, kAligned>;
};
template <class T>
struct WmmaShared : Tiled<WmmaShape<T>, 2> {
    template <bool kAligned>
    static constexpr auto kernel = wmma_shared<T, kAligned>;
};
template <class T>
struct MmaSync : Tiled<SmallShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = mma_sync<T, kAligned>;
};
template <class T>
struct WarpTiles : Tiled<WarpTileShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = warp_tiles<T, kAligned>;
};
template <class T>
struct Swizzled : Tiled<SwizzledShape<T>, 1> {
    template <bool kAligned>
    static constexpr auto kernel = swizzled<T, kAligned>;
};
template <class T>
struct MultiStage : Tiled<LargeShape<T>, kStages> {
    template <bool kAligned>
    static constexpr auto kernel = multi_stage<T, kAligned>;
};
template <class T>
struct FragmentsAhead : Tiled<LargeShape<T>, kStages> {
    template <bool kAligned>
    static constexpr auto kernel = fragments_ahead<T, kAligned>;
};

// L: one of the above.
template <class L, class T>
void launch(const Gemm<T>& unchecked, cudaStream_t stream) {
    const Gemm<T> gemm = checked("tensor_cores", unchecked);
    const auto& [a, b, c, alpha, beta] = gemm;
    if (c.rows() == 0 || c.cols() == 0) return;
    const RasterOrder order = course::make_order(c, L::BM, L::BN, kBand);
    const auto aligned = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), L::ALIGNMENT) && matrix.leading_dimension() % 8 == 0;
    };
    const auto kernel = aligned(a) && aligned(b) ? L::template kernel<true> : L::template kernel<false>;
    course::launch(kernel, {course::blocks_of(order), L::THREADS, L::SHARED, stream}, a, b,
                   make_output(c, alpha, beta), order);
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
