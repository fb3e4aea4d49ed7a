// Host code of day 42's versions with Hopper's own instructions: checks, versions, choice of a
// tile. The kernels and their launches are in eight_bits_wgmma.cuh.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "beyond/eight_bits_hopper.hpp"
#include "beyond/eight_bits_wgmma.cuh"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/few_results.hpp"
#include "common/tile/tile_choice.hpp"

namespace day42 {
namespace {

// A version: its kernel, its launch and what a block of it needs.
template <class S_>
struct Wgmma {
    using S = S_;
    static constexpr bool STORES_THROUGH_TMA = true;
    static constexpr std::size_t SHARED = sizeof(Memory<S>);
    static constexpr auto kernel = bytes_wgmma<S>;
    static constexpr auto launch = launch_bytes_wgmma<S>;
};
template <class S_>
struct SplitK {
    using S = S_;
    static constexpr bool STORES_THROUGH_TMA = false;
    static constexpr std::size_t SHARED = sizeof(hopper::Ring<S>);
    static constexpr auto kernel = bytes_split<S>;
    static constexpr auto launch = launch_bytes_split<S>;
};
template <class T>
struct Promoted {
    using S = PromotedTile<T>;
    static constexpr bool STORES_THROUGH_TMA = true;
    static constexpr std::size_t SHARED = sizeof(Memory<S>);
    static constexpr auto kernel = bytes_promoted<T>;
    static constexpr auto launch = launch_bytes_promoted<T>;
};

// K: one of the above.
template <class K, class T>
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
    if (K::STORES_THROUGH_TMA) check_map("C", product.c);
    return reason;
}

template <class K, class T>
void launch(const Product<T>& product, cudaStream_t stream) {
    const std::string reason = why_not<K>(product);
    course::require(reason.empty(), "eight_bits: ", reason);
    const auto& [a, b, c] = product;
    if (c.rows() == 0 || c.cols() == 0) return;
    K::launch(a, b, c, stream);
    CUDA_CHECK_LAUNCH();
}

template <class K>
course::KernelResources resources() {
    course::allow_shared_bytes(K::kernel, K::SHARED);
    return course::resources_of(K::kernel, (1 + K::S::CONSUMERS) * kWarpgroup, K::SHARED);
}

template <class K, class T>
KernelFor<T> kernel_for() {
    return {.launch = launch<K, T>, .why_not = why_not<K, T>, .resources = resources<K>};
}

std::string constraint(const Shape&) {
    return course::why_no_hopper();
}

template <template <class> class K>
Version version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = {.int8 = kernel_for<K<std::int8_t>, std::int8_t>(),
                         .e4m3 = kernel_for<K<__nv_fp8_e4m3>, __nv_fp8_e4m3>(),
                         .e5m2 = kernel_for<K<__nv_fp8_e5m2>, __nv_fp8_e5m2>()},
            .work = work_of,
            .constraint = constraint};
}

// --- The tile that suits the shape ---------------------------------------------------------------

template <int BM, int BN, int STAGES, int SHARERS = 1>
struct Stored {
    template <class T>
    using Kernel = Wgmma<hopper::TileShape<T, BM, BN, STAGES, SHARERS>>;
};
template <int BM, int BN, int STAGES, int SPLITS>
struct Split {
    template <class T>
    using Kernel = SplitK<hopper::TileShape<T, BM, BN, STAGES, 1, SPLITS>>;
};

struct Candidate {
    Version version;
    course::Tiling tiling;
};

template <template <class> class K>
Candidate candidate(const char* name, double launch, double tile, double step, double load) {
    using S = typename K<std::int8_t>::S;
    return {.version = version<K>(name, "a tile that `bytes_fitted` chooses from"),
            .tiling = {.rows = S::BM * S::SHARERS,
                       .columns = S::BN,
                       .cluster = S::CLUSTER,
                       .splits = S::SPLITS,
                       .blocks = 1,
                       .depth = S::BK,
                       .launch = launch,
                       .tile = tile,
                       .step = step,
                       .load = load}};
}

// Microseconds, fitted to the times of 210 shapes of INT8 and E4M3 on an H100, by least squares of
// relative errors.
const std::vector<Candidate>& candidates() {
    static const std::vector<Candidate> list = {
        candidate<Stored<128, 256, 4, 2>::Kernel>("bytes_wgmma", 4.53, 4.62, 0.538, 0.164),
        candidate<Stored<192, 192, 4, 2>::Kernel>("tile_192x192", 4.39, 5.19, 0.610, 0.162),
        candidate<Stored<128, 192, 4, 2>::Kernel>("tile_128x192", 4.09, 3.63, 0.426, 0.124),
        candidate<Stored<128, 128, 6, 2>::Kernel>("tile_128x128", 5.05, 2.07, 0.236, 0.210),
        candidate<Stored<64, 128, 8>::Kernel>("tile_64x128", 2.81, 0.86, 0.194, 0.220),
        candidate<Stored<128, 64, 8>::Kernel>("tile_128x64", 3.32, 0.47, 0.172, 0.251),
        candidate<Stored<64, 64, 12>::Kernel>("tile_64x64", 3.35, 0.27, 0.119, 0.159),
        candidate<Split<128, 128, 6, 2>::Kernel>("split_2_128x128", 2.39, 5.33, 0.194, 0.357),
        candidate<Split<64, 128, 8, 2>::Kernel>("split_2_64x128", 2.50, 3.67, 0.146, 0.279)};
    return list;
}

const Candidate& fastest(const Shape& shape, std::size_t multiprocessors) {
    return *std::ranges::min_element(candidates(), {}, [&](const Candidate& candidate) {
        return candidate.tiling.time(shape, multiprocessors);
    });
}

template <class T>
Shape shape_of(const Product<T>& product) {
    return {.m = product.c.rows(), .n = product.c.cols(), .k = product.a.cols()};
}

template <class T>
const KernelFor<T>& fitting(const Product<T>& product) {
    return fastest(shape_of(product), course::multiprocessors()).version.launcher.template of<T>();
}

// Products with few results and a deep K go to all multiprocessors (common/tile/few_results.hpp).
template <class T>
void launch_fitted(const Product<T>& product, cudaStream_t stream) {
    const Shape shape = shape_of(product);
    const std::size_t multiprocessors = course::multiprocessors();
    const Candidate& tile = fastest(shape, multiprocessors);
    const KernelFor<T>& kernel = tile.version.launcher.template of<T>();
    const course::FewResultsPlan few =
        course::plan_few_results({1, shape.m, shape.n, shape.k}, multiprocessors);
    if (few.lanes > 0 || few.microseconds >= tile.tiling.time(shape, multiprocessors) ||
        !kernel.why_not(product).empty())
        return kernel.launch(product, stream);
    check(product);
    if (product.c.rows() == 0 || product.c.cols() == 0) return;
    const course::OperandsOf<T> operands{
        .a = {.first = product.a}, .b = {.first = product.b}, .op_b = course::Op::kTranspose};
    course::multiply_few<T>(few, operands, {.first = product.c}, 1, 0, stream);
}

template <class T>
KernelFor<T> fitted() {
    return {.launch = launch_fitted<T>,
            .why_not = [](const Product<T>& product) { return fitting(product).why_not(product); },
            .resources = nullptr};  // those of the tile that it takes
}

template <class T>
using Wide = Wgmma<WideTile<T>>;

}  // namespace

std::vector<Version> hopper_versions() {
    return {version<Wide>("bytes_wgmma", "TMA and wgmma with 32 of K, persistent, C stored by TMA"),
            {.name = "bytes_fitted",
             .idea = "the tile that suits the shape, or blocks that share K",
             .launcher = {.int8 = fitted<std::int8_t>(),
                          .e4m3 = fitted<__nv_fp8_e4m3>(),
                          .e5m2 = fitted<__nv_fp8_e5m2>()},
             .work = work_of,
             .constraint = constraint},
            {.name = "bytes_promoted",
             .idea = "FP8: CUDA cores add the sums of 128 products",
             .launcher = {.int8 = {},  // its sums are exact
                          .e4m3 = kernel_for<Promoted<__nv_fp8_e4m3>, __nv_fp8_e4m3>(),
                          .e5m2 = kernel_for<Promoted<__nv_fp8_e5m2>, __nv_fp8_e5m2>()},
             .work = work_of,
             .constraint = constraint}};
}

std::span<const Version> tiles_to_choose_from() {
    static const std::vector<Version> list = [] {
        std::vector<Version> versions;
        for (const Candidate& candidate : candidates())
            versions.push_back(candidate.version);
        return versions;
    }();
    return list;
}

std::string tile_for(const Shape& shape, std::size_t multiprocessors) {
    return fastest(shape, multiprocessors).version.name;
}

}  // namespace day42
