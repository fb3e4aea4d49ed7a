// Launchers of day 42's versions with Hopper's own instructions.
#include <string>
#include <vector>

#include "arguments.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_map.hpp"
#include "eight_bits_hopper.hpp"
#include "eight_bits_wgmma.cuh"

namespace day42 {
namespace {

// --- Plans: the versions -----------------------------------------------------------------------------------------------

// Idea: the largest tile; wgmma's sums stay where they are until the tile is done.
// Cost removed: see above.
// Still limits it: of integers, nothing but the end of tiles and power. Of FP8 the sums: Hopper adds with fewer digits than a float has, and where
// many numbers are added, what is small beside their sum is lost.
struct BytesWgmma {
    template <class T>
    using Tile = course::hopper::TileShape<T, 128, 256, 4, 2>;
    static constexpr bool kPromoted = false;
};

// Idea: the tensor cores sum 128 products at a time, and the CUDA cores add these sums as floats.
// Cost removed: the lost digits.
// Still limits it: two sums for each result take twice the registers, so tiles are half as wide; and while a warpgroup adds, only the other one
// multiplies.
struct BytesPromoted {
    template <class T>
    using Tile = course::hopper::TileShape<T, 128, 128, 6, 2>;
    static constexpr bool kPromoted = true;
};

// --- Launchers ---------------------------------------------------------------------------------------------------------

constexpr int kBand = 8;

template <class Plan, class T>
struct Launch {
    using S = typename Plan::template Tile<T>;
    static constexpr course::ClusterLaunch kHow = {.threads = (1 + S::MULTIPLIERS) * kWarpgroup,
                                                   .shared = sizeof(Memory<S>),
                                                   .cluster = S::CLUSTER,
                                                   .persistent = true};
    static constexpr auto kKernel = bytes_wgmma<S, Plan::kPromoted>;

    static std::string why_not(const Product<T>& product) {
        check(product);
        std::string reason;
        const auto look_at = [&reason](const char* name, const auto& matrix) {
            if (!reason.empty()) return;
            reason = course::why_no_tensor_map(matrix);
            if (!reason.empty()) reason = std::string(name) + " " + reason;
        };
        if (product.a.cols() > 0) {
            look_at("A", product.a);
            look_at("B", product.b);
        }
        look_at("C", product.c);
        return reason;
    }

    static void launch(const Product<T>& product, cudaStream_t stream) {
        const std::string reason = why_not(product);
        course::require(reason.empty(), "eight_bits: ", reason);
        const auto& [a, b, c] = product;
        if (c.rows() == 0 || c.cols() == 0) return;

        Maps maps{};
        if (a.cols() > 0) {
            maps.a = course::make_tensor_map(a, S::BM, S::BK);
            maps.b = course::make_tensor_map(b, S::SHARE, S::IN_ROW);
        }
        maps.c = course::make_tensor_map(c, 16, kSliceColumns);
        const RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBand);
        kHow.start(kKernel, course::blocks_of(order, S::CLUSTER), stream, maps,
                   course::make_output<Sum<T>>(c, 1, 0), static_cast<int>(a.cols()), order);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kKernel, kHow.shared);
        return course::resources_of(kKernel, kHow.threads, kHow.shared);
    }

    static KernelFor<T> kernel_for() {
        return {.launch = launch, .why_not = why_not, .resources = resources};
    }
};

std::string constraint(const Shape&) {
    return course::why_no_hopper();
}

}  // namespace

std::vector<Version> hopper_versions() {
    return {{.name = "bytes_wgmma",
             .idea = "TMA and wgmma with 32 of k, persistent, C stored by TMA",
             .launcher = {.int8 = Launch<BytesWgmma, std::int8_t>::kernel_for(),
                          .e4m3 = Launch<BytesWgmma, __nv_fp8_e4m3>::kernel_for(),
                          .e5m2 = Launch<BytesWgmma, __nv_fp8_e5m2>::kernel_for()},
             .work = work_of,
             .constraint = constraint},
            {.name = "bytes_promoted",
             .idea = "FP8: every 128 products are added in single precision",
             .launcher = {.int8 = {},  // its sums are exact
                          .e4m3 = Launch<BytesPromoted, __nv_fp8_e4m3>::kernel_for(),
                          .e5m2 = Launch<BytesPromoted, __nv_fp8_e5m2>::kernel_for()},
             .work = work_of,
             .constraint = constraint}};
}

}  // namespace day42
