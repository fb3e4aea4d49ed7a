// Day 41's host code: argument checks, the list of versions, the choice of a tile. The kernels and
// their launches are in hopper_matmul.cuh, beyond/clusters.cuh and beyond/any_tile.cuh.
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "beyond/any_tile.cuh"
#include "beyond/clusters.cuh"
#include "beyond/tile_table.hpp"
#include "common/check/check.hpp"
#include "common/device/aligned_copy.cuh"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/few_results.hpp"
#include "common/tile/tile_choice.hpp"
#include "common/tile/unaligned_matmul.hpp"
#include "hopper_matmul.cuh"
#include "hopper_matmul.hpp"

namespace day41 {
namespace {

using course::half_matmul::checked;
using course::half_matmul::kernel_of;

// A version: its kernel, its launch and what a block of it needs.
template <class T>
struct TmaWgmma {
    static constexpr int THREADS = 2 * kWarpgroup;
    static constexpr bool STORES_THROUGH_TMA = false;
    static constexpr std::size_t SHARED = sizeof(OneStage<T>);
    static constexpr auto kernel = tma_wgmma<T>;
    static constexpr auto launch = launch_tma_wgmma<T>;
};
template <class T>
struct PlainRingOf : TmaWgmma<T> {
    static constexpr std::size_t SHARED = sizeof(PlainRing<T>);
    static constexpr auto kernel = ring<T>;
    static constexpr auto launch = launch_ring<T>;
};
template <class T>
struct Specialised : TmaWgmma<T> {
    static constexpr int THREADS = 3 * kWarpgroup;
    static constexpr std::size_t SHARED = sizeof(DeepRing<T>);
    static constexpr auto kernel = specialised<T>;
    static constexpr auto launch = launch_specialised<T>;
};
template <class T>
struct WideTile : Specialised<T> {
    static constexpr std::size_t SHARED = sizeof(WideRing<T>);
    static constexpr auto kernel = wide_tile<T>;
    static constexpr auto launch = launch_wide_tile<T>;
};
template <class T>
struct Multicast : WideTile<T> {
    static constexpr auto kernel = multicast<T>;
    static constexpr auto launch = launch_multicast<T>;
};
template <class T>
struct Persistent : WideTile<T> {
    static constexpr auto kernel = persistent<T>;
    static constexpr auto launch = launch_persistent<T>;
};
template <class S>
struct AsyncStore {
    using Tile = S;
    static constexpr int THREADS = (1 + S::CONSUMERS) * kWarpgroup;
    static constexpr bool STORES_THROUGH_TMA = true;
    static constexpr std::size_t SHARED = sizeof(RingAndSlices<S>);
    static constexpr auto kernel = async_store<S>;
    static constexpr auto launch = launch_async_store<S>;
};
template <class S>
struct SplitK {
    using Tile = S;
    static constexpr int THREADS = (1 + S::CONSUMERS) * kWarpgroup;
    static constexpr bool STORES_THROUGH_TMA = false;
    static constexpr std::size_t SHARED = sizeof(hopper::Ring<S>);
    static constexpr auto kernel = split_k<S>;
    static constexpr auto launch = launch_split_k<S>;
};

// K: one of the above.
template <class K, class T>
std::string why_not(const Gemm<T>& unchecked) {
    const Gemm<T> gemm = checked("hopper_matmul", unchecked);
    std::string reason;
    const auto check = [&reason](const char* name, const auto& matrix) {
        if (!reason.empty()) return;
        reason = course::why_no_tensor_map(matrix);
        if (!reason.empty()) reason = std::string(name) + " " + reason;
    };
    if (gemm.a.cols() > 0) {
        check("A", gemm.a);
        check("B", gemm.b);
    }
    if (K::STORES_THROUGH_TMA) check("C", gemm.c);
    return reason;
}

template <class K, class T>
void launch(const Gemm<T>& unchecked, cudaStream_t stream) {
    const Gemm<T> gemm = checked("hopper_matmul", unchecked);
    const auto& [a, b, c, alpha, beta] = gemm;
    const std::string reason = why_not<K>(gemm);
    course::require(reason.empty(), "hopper_matmul: ", reason);
    if (c.rows() == 0 || c.cols() == 0) return;
    K::launch(a, b, make_output(c, alpha, beta), stream);
    CUDA_CHECK_LAUNCH();
}

template <class K>
course::KernelResources resources() {
    course::allow_shared_bytes(K::kernel, K::SHARED);
    return course::resources_of(K::kernel, K::THREADS, K::SHARED);
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
            .launcher = {.half = kernel_for<K<__half>, __half>(),
                         .bfloat16 = kernel_for<K<__nv_bfloat16>, __nv_bfloat16>()},
            .work = course::half_matmul::work_of,
            .constraint = constraint};
}

// --- The tile that suits the shape ---------------------------------------------------------------

template <int BM, int BN, int STAGES, int SHARERS = 1>
struct Stored {
    template <class T>
    using Kernel = AsyncStore<hopper::TileShape<T, BM, BN, STAGES, SHARERS>>;
};
template <int BM, int BN, int STAGES, int SPLITS>
struct Split {
    template <class T>
    using Kernel = SplitK<hopper::TileShape<T, BM, BN, STAGES, 1, SPLITS>>;
};
template <class T>
using LargeTile = Stored<128, 256, 4, 2>::Kernel<T>;
template <class T>
using SplitK128x128 = Split<128, 128, 6, 2>::Kernel<T>;

template <template <class> class K>
Candidate candidate(const char* name, std::size_t blocks, double launch, double tile, double step,
                    double load) {
    using Tile = typename K<__half>::Tile;
    return {.version = version<K>(name, "a tile that `fitted` chooses from"),
            .tiling = {.rows = Tile::BM * Tile::SHARERS,
                       .columns = Tile::BN,
                       .cluster = Tile::CLUSTER,
                       .splits = Tile::SPLITS,
                       .blocks = blocks,
                       .depth = BK,
                       .launch = launch,
                       .tile = tile,
                       .step = step,
                       .load = load}};
}

}  // namespace

// Blocks per multiprocessor and the four times of a tiling, in microseconds. They were fitted to
// the times of 127 random shapes on an H100, by least squares of relative errors.
const std::vector<Candidate>& candidates() {
    static const std::vector<Candidate> list = {
        candidate<LargeTile>("async_store", 1, 0.90, 5.92, 0.602, 0.082),
        candidate<Stored<192, 192, 4, 2>::Kernel>("tile_192x192", 1, 0.28, 6.71, 0.672, 0.098),
        candidate<Stored<128, 128, 6, 2>::Kernel>("tile_128x128", 1, 3.14, 2.52, 0.299, 0.131),
        candidate<Stored<64, 128, 8>::Kernel>("tile_64x128", 1, 2.78, 1.09, 0.206, 0.174),
        candidate<Stored<128, 64, 8>::Kernel>("tile_128x64", 1, 2.89, 0.92, 0.209, 0.177),
        candidate<Stored<64, 64, 6>::Kernel>("tile_64x64", 2, 2.52, 0.88, 0.156, 0.172),
        candidate<SplitK128x128>("split_k", 1, 1.21, 5.30, 0.309, 0.267),
        candidate<Split<64, 128, 8, 2>::Kernel>("split_2_64x128", 1, 1.69, 3.69, 0.213, 0.237),
        candidate<Split<64, 128, 8, 4>::Kernel>("split_4_64x128", 1, 2.06, 3.53, 0.155, 0.333),
        candidate<Split<64, 64, 12, 4>::Kernel>("split_4_64x64", 1, 1.91, 3.08, 0.120, 0.180),
        candidate<Split<64, 64, 12, 8>::Kernel>("split_8_64x64", 1, 2.55, 3.16, 0.060, 0.302)};
    return list;
}

const Candidate& fastest(std::span<const Candidate> candidates, const Shape& shape,
                         std::size_t multiprocessors) {
    return *std::ranges::min_element(candidates, {}, [&](const Candidate& candidate) {
        return candidate.tiling.time(shape, multiprocessors);
    });
}

namespace {

// With the times of the current GPU, if `./course tune` has measured them. Read once for each.
std::span<const Candidate> candidates_of_current_gpu() {
    static std::mutex mutex;
    static std::map<int, std::vector<Candidate>> known;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const std::scoped_lock lock(mutex);
    const auto found = known.find(device);
    if (found != known.end()) return found->second;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    return known.emplace(device, candidates_for(properties.name, tile_table_file())).first->second;
}

const Candidate& fastest_here(const Shape& shape) {
    return fastest(candidates_of_current_gpu(), shape, course::multiprocessors());
}

template <class T>
const KernelFor<T>& fitting(const Gemm<T>& gemm) {
    const Shape shape{.m = gemm.c.rows(), .n = gemm.c.cols(), .k = gemm.a.cols()};
    return kernel_of<T>(fastest_here(shape).version);
}

template <class T>
KernelFor<T> fitted() {
    return {.launch = [](const Gemm<T>& gemm, cudaStream_t stream) { fitting(gemm).launch(gemm, stream); },
            .why_not = [](const Gemm<T>& gemm) { return fitting(gemm).why_not(gemm); },
            .resources = nullptr};  // those of the tile that it takes
}

// --- Unaligned rows ------------------------------------------------------------------------------

// Microseconds for aligned copies of the operands that TMA cannot address, as measured on an H100:
// memory for them, a kernel for each, and bytes read and written. If rows of C are unaligned, a
// slower version stores it.
double time_of_copies(const Shape& shape, bool copies_a, bool copies_b) {
    constexpr double kMemory = 2.3;
    constexpr double kKernel = 4.4;
    constexpr double kSlowerStore = 1.5;
    constexpr double kBytesPerMicrosecond = 4.8e6;
    const std::size_t elements = (copies_a ? shape.m * shape.k : 0) + (copies_b ? shape.k * shape.n : 0);
    const int kernels = (copies_a ? 1 : 0) + (copies_b ? 1 : 0);
    return kMemory + kernels * kKernel + (shape.n % 4 == 0 ? 0 : kSlowerStore) +
           4 * static_cast<double>(elements) / kBytesPerMicrosecond;
}

// Products so large that the cost of the copies is negligible are fastest with TMA. C needs no
// copy: versions that store from registers take any alignment.
template <class T>
void launch_realigned(const Gemm<T>& unchecked, cudaStream_t stream) {
    const Gemm<T> gemm = checked("hopper_matmul", unchecked);
    if (gemm.c.rows() == 0 || gemm.c.cols() == 0) return;
    const Shape shape{.m = gemm.c.rows(), .n = gemm.c.cols(), .k = gemm.a.cols()};
    const bool copies_a = shape.k > 0 && !course::why_no_tensor_map(gemm.a).empty();
    const bool copies_b = shape.k > 0 && !course::why_no_tensor_map(gemm.b).empty();
    const bool copies = copies_a || copies_b;
    const double through_tma = fastest_here(shape).tiling.time(shape, course::multiprocessors()) +
                               (copies ? time_of_copies(shape, copies_a, copies_b) : 0);
    const double unaligned = copies ? course::time_of_unaligned({1, shape.m, shape.n, shape.k}) : through_tma;
    const course::OperandsOf<T> operands{.a = {.first = gemm.a}, .b = {.first = gemm.b}};
    const course::Batch<float> c{.first = gemm.c};
    const course::FewResultsPlan few =
        course::plan_few_results({1, shape.m, shape.n, shape.k}, course::multiprocessors());
    if (few.lanes == 0 && few.microseconds < std::min(unaligned, through_tma))
        return course::multiply_few<T>(few, operands, c, gemm.alpha, gemm.beta, stream);
    if (unaligned < through_tma)
        return course::multiply_unaligned<T>(operands, c, gemm.alpha, gemm.beta, stream);
    const course::Aligned<T> a(gemm.a, stream);
    const course::Aligned<T> b(gemm.b, stream);
    const Gemm<T> aligned{
        .a = a.matrix(), .b = b.matrix(), .c = gemm.c, .alpha = gemm.alpha, .beta = gemm.beta};
    const KernelFor<T>& fitted = fitting(aligned);
    if (fitted.why_not(aligned).empty()) return fitted.launch(aligned, stream);
    const std::size_t large =
        course::ceil_div<std::size_t>(gemm.c.rows(), 256) * course::ceil_div<std::size_t>(gemm.c.cols(), 256);
    if (large * 2 < course::multiprocessors()) {
        launch<Specialised<T>>(aligned, stream);
    } else {
        launch<Persistent<T>>(aligned, stream);
    }
}

template <class T>
KernelFor<T> realigned() {
    return {.launch = launch_realigned<T>,
            .why_not = [](const Gemm<T>&) { return std::string(); },
            .resources = nullptr};  // those of the version that it takes
}

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = {
        version<TmaWgmma>("tma_wgmma", "TMA copies, wgmma multiplies, in turns"),
        version<PlainRingOf>("ring", "a ring of four stages"),
        version<Specialised>("specialised", "a producer warpgroup, two consumers"),
        version<WideTile>("wide_tile", "128 x 256 results per block"),
        version<Multicast>("multicast", "two blocks of a cluster share B"),
        version<Persistent>("persistent", "a block computes many tiles"),
        version<LargeTile>("async_store", "C stored through shared memory by TMA"),
        version<SplitK128x128>("split_k", "two blocks share the K of a tile"),
        {.name = "fitted",
         .idea = "the tile that suits the shape",
         .launcher = {.half = fitted<__half>(), .bfloat16 = fitted<__nv_bfloat16>()},
         .work = course::half_matmul::work_of,
         .constraint = constraint},
        {.name = "realigned",
         .idea = "unaligned rows are loaded by threads, or copied first",
         .launcher = {.half = realigned<__half>(), .bfloat16 = realigned<__nv_bfloat16>()},
         .work = course::half_matmul::work_of,
         .constraint = constraint}};
    return list;
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
    return fastest(candidates(), shape, multiprocessors).version.name;
}

std::string tile_on_current_gpu(const Shape& shape) {
    return fastest_here(shape).version.name;
}

}  // namespace day41
