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

constexpr int kBand = 8;  // of 256 rows, as on day 41

// What a launch must know of a kernel.
template <class T>
struct Wgmma {
    using S = WideTile<T>;
    static constexpr auto kernel = bytes_wgmma<T>;
};
template <class T>
struct Promoted {
    using S = PromotedTile<T>;
    static constexpr auto kernel = bytes_promoted<T>;
};

// K: one of the above.
template <class K>
constexpr course::ClusterLaunch kHow = {.threads = (1 + K::S::CONSUMERS) * kWarpgroup,
                                        .shared = sizeof(Memory<typename K::S>),
                                        .cluster = K::S::CLUSTER,
                                        .persistent = true};

template <class T>
std::string why_not(const Product<T>& product) {
    check(product);
    std::string reason;
    const auto check_map = [&reason](const char* name, const auto& matrix) {
        if (!reason.empty()) return;
        reason = course::why_no_tensor_map(matrix);
        if (!reason.empty()) reason = std::string(name) + " " + reason;
    };
    if (product.a.cols() > 0) {
        check_map("A", product.a);
        check_map("B", product.b);
    }
    check_map("C", product.c);
    return reason;
}

template <class K, class T>
void launch(const Product<T>& product, cudaStream_t stream) {
    using S = typename K::S;
    const std::string reason = why_not(product);
    course::require(reason.empty(), "eight_bits: ", reason);
    const auto& [a, b, c] = product;
    if (c.rows() == 0 || c.cols() == 0) return;

    hopper::Maps maps{};
    if (a.cols() > 0) {
        maps.a = course::make_tensor_map(a, S::BM, S::BK);
        maps.b = course::make_tensor_map(b, S::SHARE, S::IN_ROW);
    }
    maps.c = course::make_tensor_map(c, 16, hopper::kSliceColumns);
    const RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBand);
    kHow<K>.start(K::kernel, course::blocks_of(order, S::CLUSTER), stream, maps,
                  course::make_output<Sum<T>>(c, 1, 0), static_cast<int>(a.cols()), order);
}

template <class K>
course::KernelResources resources() {
    course::allow_shared_bytes(K::kernel, kHow<K>.shared);
    return course::resources_of(K::kernel, kHow<K>.threads, kHow<K>.shared);
}

template <template <class> class K, class T>
KernelFor<T> kernel_for() {
    return {.launch = launch<K<T>, T>, .why_not = why_not<T>, .resources = resources<K<T>>};
}

std::string constraint(const Shape&) {
    return course::why_no_hopper();
}

}  // namespace

std::vector<Version> hopper_versions() {
    return {{.name = "bytes_wgmma",
             .idea = "TMA and wgmma with 32 of K, persistent, C stored by TMA",
             .launcher = {.int8 = kernel_for<Wgmma, std::int8_t>(),
                          .e4m3 = kernel_for<Wgmma, __nv_fp8_e4m3>(),
                          .e5m2 = kernel_for<Wgmma, __nv_fp8_e5m2>()},
             .work = work_of,
             .constraint = constraint},
            {.name = "bytes_promoted",
             .idea = "FP8: CUDA cores add the sums of 128 products",
             .launcher = {.int8 = {},  // its sums are exact
                          .e4m3 = kernel_for<Promoted, __nv_fp8_e4m3>(),
                          .e5m2 = kernel_for<Promoted, __nv_fp8_e5m2>()},
             .work = work_of,
             .constraint = constraint}};
}

}  // namespace day42
