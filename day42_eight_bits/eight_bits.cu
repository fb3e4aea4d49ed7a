// Day 42's host code: argument checks and the list of versions. The kernels and their launches are
// in eight_bits.cuh; beyond/eight_bits_hopper.cu has the versions of beyond/eight_bits_wgmma.cuh.
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.hpp"
#include "beyond/eight_bits_hopper.hpp"
#include "common/check/check.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "eight_bits.cuh"
#include "eight_bits.hpp"

namespace day42 {
namespace {

// A version: its kernel, its launch and what a block of it needs.
template <class T>
struct MmaGlobal {
    static constexpr int THREADS = 128;
    static constexpr std::size_t SHARED = 0;
    template <bool kAligned>
    static constexpr auto kernel = bytes_mma_global<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_bytes_mma_global<T, kAligned>;
};
template <class T>
struct MmaSync {
    using S = TileShape<T>;
    static constexpr int THREADS = S::THREADS;
    static constexpr std::size_t SHARED = sizeof(Stage<S>) * S::STAGES;
    template <bool kAligned>
    static constexpr auto kernel = bytes_mma_sync<T, kAligned>;
    template <bool kAligned>
    static constexpr auto launch = launch_bytes_mma_sync<T, kAligned>;
};

// Tensor cores take INT8 from compute capability 7.5 on, FP8 from 8.9. L: one of the above.
template <class L, class T>
std::string why_not(const Product<T>& product) {
    check(product);
    if (std::is_integral_v<T>) return "";
    int device = 0;
    int major = 0;
    int minor = 0;
    cudaFuncAttributes code{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    CUDA_CHECK(cudaFuncGetAttributes(&code, L::template kernel<true>));
    if (major * 10 + minor >= 89 && code.ptxVersion >= 89) return "";
    return "FP8 needs compute capability 8.9, and code built for it; this GPU has " + std::to_string(major) +
           "." + std::to_string(minor) + ", the code is for " + std::to_string(code.ptxVersion / 10) + "." +
           std::to_string(code.ptxVersion % 10);
}

template <class L, class T>
void launch(const Product<T>& product, cudaStream_t stream) {
    const std::string reason = why_not<L>(product);
    course::require(reason.empty(), "eight_bits: ", reason);
    const auto& [a, b, c] = product;
    if (c.rows() == 0 || c.cols() == 0) return;
    const auto aligned = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 16 == 0;
    };
    const auto run = aligned(a) && aligned(b) ? L::template launch<true> : L::template launch<false>;
    run(a, b, course::make_output<Sum<T>>(c, 1, 0), stream);
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
    return {.launch = launch<L, T>, .why_not = why_not<L, T>, .resources = resources<L>};
}

template <template <class> class L>
Version version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = {.int8 = kernel_for<L<std::int8_t>, std::int8_t>(),
                         .e4m3 = kernel_for<L<__nv_fp8_e4m3>, __nv_fp8_e4m3>(),
                         .e5m2 = kernel_for<L<__nv_fp8_e5m2>, __nv_fp8_e5m2>()},
            .work = work_of,
            .constraint = constraint<L<std::int8_t>>};
}

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = [] {
        std::vector<Version> all = {
            version<MmaGlobal>("bytes_mma_global", "mma.sync, fragments from global memory"),
            version<MmaSync>("bytes_mma_sync", "mma.sync, shared memory, three stages")};
        const std::vector<Version> hopper = hopper_versions();
        all.insert(all.end(), hopper.begin(), hopper.end());
        return all;
    }();
    return list;
}

}  // namespace day42
