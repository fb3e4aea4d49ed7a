// Day 42's launchers: argument checks, the size of the grid, the list of versions. The kernels are in
// eight_bits.cuh; those with Hopper's own instructions are compiled by eight_bits_hopper.cu.
#include <vector>

#include "arguments.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "eight_bits.cuh"
#include "eight_bits.hpp"
#include "eight_bits_hopper.hpp"

namespace day42 {
namespace {

// --- Launcher ----------------------------------------------------------------------------------------------------------

constexpr int kBand = 8;

template <class T>
struct Launch {
    using S = TileShape<T>;
    static constexpr std::size_t kShared = sizeof(Stage<S>) * S::STAGES;

    static void launch(const Product<T>& product, cudaStream_t stream) {
        const std::string reason = why_not(product);
        course::require(reason.empty(), "eight_bits: ", reason);
        const auto& [a, b, c] = product;
        if (c.rows() == 0 || c.cols() == 0) return;
        const RasterOrder order = course::make_order(c, S::BM, S::BN, kBand);
        const auto aligned = [](const auto& matrix) {
            return course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 16 == 0;
        };
        const auto kernel = aligned(a) && aligned(b) ? bytes_mma_sync<S, true> : bytes_mma_sync<S, false>;
        course::launch(kernel, {course::blocks_of(order), S::THREADS, kShared, stream}, a, b,
                       course::make_output<Sum<T>>(c, 1, 0), order);
    }

    // Tensor cores have multiplied bytes since compute capability 8.0 and before, FP8 since 8.9.
    static std::string why_not(const Product<T>& product) {
        check(product);
        if (std::is_integral_v<T>) return "";
        int device = 0;
        int major = 0;
        int minor = 0;
        cudaFuncAttributes code{};
        CUDA_CHECK(cudaGetDevice(&device));
        CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
        CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
        CUDA_CHECK(cudaFuncGetAttributes(&code, bytes_mma_sync<S, true>));
        if (major * 10 + minor >= 89 && code.ptxVersion >= 89) return "";
        return "FP8 needs compute capability 8.9, and code built for it; this GPU has " +
               std::to_string(major) + "." + std::to_string(minor) + ", the code is for " +
               std::to_string(code.ptxVersion / 10) + "." + std::to_string(code.ptxVersion % 10);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(bytes_mma_sync<S, true>, kShared);
        return course::resources_of(bytes_mma_sync<S, true>, S::THREADS, kShared);
    }

    static std::string constraint(const Shape&) {
        return course::why_no_tensor_cores(bytes_mma_sync<S, true>, kShared);
    }

    static KernelFor<T> kernel_for() {
        return {.launch = launch, .why_not = why_not, .resources = resources};
    }
};

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = [] {
        std::vector<Version> all = {{.name = "bytes_mma_sync",
                                     .idea = "mma.sync with 32 of k, three stages",
                                     .launcher = {.int8 = Launch<std::int8_t>::kernel_for(),
                                                  .e4m3 = Launch<__nv_fp8_e4m3>::kernel_for(),
                                                  .e5m2 = Launch<__nv_fp8_e5m2>::kernel_for()},
                                     .work = work_of,
                                     .constraint = Launch<std::int8_t>::constraint}};
        const std::vector<Version> hopper = hopper_versions();
        all.insert(all.end(), hopper.begin(), hopper.end());
        return all;
    }();
    return list;
}

}  // namespace day42
