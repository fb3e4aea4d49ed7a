// Day 41's launchers: argument checks, tensor maps, the size of the grid, the list of versions. The kernels
// are in hopper_matmul.cuh.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "hopper_matmul.cuh"
#include "hopper_matmul.hpp"
#include "realign.cuh"
#include "tile_choice.hpp"

namespace day41 {
namespace {

using course::half_matmul::checked;
using course::half_matmul::kernel_of;

// --- Plans: the versions -----------------------------------------------------------------------------------------------

struct TmaWgmma {
    template <class T>
    using Tile = TileShape<T, 128, 128, 1>;
    static constexpr bool kSpecialised = false, kPersistent = false, kThroughTma = false;
};

// Idea: a warpgroup of its own for copies, six stages ahead.
// Cost removed: copies and products run at the same time.
// Still limits it: shared memory. For each 64 x 128 products a warpgroup reads 64 rows of A and 128 columns of B.
struct Specialised {
    template <class T>
    using Tile = TileShape<T, 128, 128, 6>;
    static constexpr bool kSpecialised = true, kPersistent = false, kThroughTma = false;
};

// Idea: 128 x 256. The sums take 128 registers of a thread: the producer gives its own away, and those who multiply get 232.
// Cost removed: a sixth of what is read from shared memory for a product, and a quarter of what comes from L2.
// Still limits it: tiles begin and end; where they are many L2, too: 48 KB for each 1024 cycles of products, on every multiprocessor.
struct WideTile {
    template <class T>
    using Tile = TileShape<T, 128, 256, 4>;
    static constexpr bool kSpecialised = true, kPersistent = false, kThroughTma = false;
};

// Idea: two blocks, one below the other, need the same B: each fetches half of it for both.
// Cost removed: a third of what comes from L2.
// Still limits it: tiles begin and end. While C is stored, and the first stages of the next tile are on their way, nobody multiplies.
struct Multicast {
    template <class T>
    using Tile = TileShape<T, 128, 256, 4, 2>;
    static constexpr bool kSpecialised = true, kPersistent = false, kThroughTma = false;
};

// Idea: as many blocks as run at a time; each goes from tile to tile. The producer does not wait for C to be stored. Tiles are taken in
// bands, so that blocks that run together share what is in L2.
// Cost removed: the start of a tile; misses in L2.
// Still limits it: storing C, which keeps those who multiply from it.
struct Persistent {
    template <class T>
    using Tile = TileShape<T, 128, 256, 4, 2>;
    static constexpr bool kSpecialised = true, kPersistent = true, kThroughTma = false;
};

// Idea: C goes to shared memory, slice by slice, and from there TMA stores it.
// Cost removed: waiting for stores, and their addresses.
// Still limits it: power. The tensor cores are busy, and the GPU lowers its clock.
struct AsyncStore {
    template <class T>
    using Tile = TileShape<T, 128, 256, 4, 2>;
    static constexpr bool kSpecialised = true, kPersistent = true, kThroughTma = true;
};

// Idea: two blocks for a tile, each with half of K.
// Cost removed, still limits it: see the kernel.
template <int BM, int BN, int STAGES>
struct SplitK {
    template <class T>
    using Tile = TileShape<T, BM, BN, STAGES, 1, 2>;
    static constexpr bool kSpecialised = true, kPersistent = false, kThroughTma = false;
};

// Idea: AsyncStore with tiles of another size.
// Cost removed: multiprocessors that have nothing to do in the last round of tiles.
// Still limits it: smaller tiles read more for a product, from L2 and from shared memory.
template <int BM, int BN, int STAGES, int SHARERS>
struct AnyTile {
    template <class T>
    using Tile = TileShape<T, BM, BN, STAGES, SHARERS>;
    static constexpr bool kSpecialised = true, kPersistent = true, kThroughTma = true;
};

// --- Launchers -------------------------------------------------------------------------------------------------------

constexpr int kBand = 8;  // of 256 rows: 66 clusters work on about 8 x 8 tiles of 256 x 256

template <class Plan, class T>
struct Launch {
    using S = typename Plan::template Tile<T>;
    static constexpr course::ClusterLaunch kHow = {
        .threads = (S::MULTIPLIERS + (Plan::kSpecialised ? 1 : 0)) * kWarpgroup,
        .shared = Plan::kSpecialised ? sizeof(Memory<S, Plan::kThroughTma>) : sizeof(Stages<S>),
        .cluster = S::CLUSTER,
        .persistent = Plan::kPersistent};
    using Kernel = void (*)(Maps, Output, int, RasterOrder);

    static Kernel kernel() {
        if constexpr (S::SPLITS > 1) {
            return split_k<S>;
        } else if constexpr (Plan::kSpecialised) {
            return specialised<S, Plan::kThroughTma>;
        } else {
            return single_stage<S>;
        }
    }

    static std::string why_not(const Gemm<T>& unchecked) {
        const Gemm<T> gemm = checked("hopper_matmul", unchecked);
        const auto& [a, b, c, alpha, beta] = gemm;
        std::string reason;
        const auto look_at = [&reason](const char* name, const auto& matrix) {
            if (!reason.empty()) return;
            reason = course::why_no_tensor_map(matrix);
            if (!reason.empty()) reason = std::string(name) + " " + reason;
        };
        if (a.cols() > 0) {
            look_at("A", a);
            look_at("B", b);
        }
        if (Plan::kThroughTma) look_at("C", c);
        return reason;
    }

    static void launch(const Gemm<T>& unchecked, cudaStream_t stream) {
        const Gemm<T> gemm = checked("hopper_matmul", unchecked);
        const auto& [a, b, c, alpha, beta] = gemm;
        const std::string reason = why_not(gemm);
        course::require(reason.empty(), "hopper_matmul: ", reason);
        if (c.rows() == 0 || c.cols() == 0) return;

        Maps maps{};
        if (a.cols() > 0) {
            maps.a = course::make_tensor_map(a, S::BM, 64);
            maps.b = course::make_tensor_map(b, S::SHARE, 64);
        }
        if (Plan::kThroughTma) maps.c = course::make_tensor_map(c, 16, kSliceColumns);
        const RasterOrder order =
            course::make_order(c, S::BM * S::SHARERS, S::BN, Plan::kPersistent ? kBand : 1);
        const Output out = course::make_output(c, alpha, beta);
        kHow.start(kernel(), course::blocks_of(order, S::CLUSTER), stream, maps, out,
                   static_cast<int>(a.cols()), order);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kernel(), kHow.shared);
        return course::resources_of(kernel(), kHow.threads, kHow.shared);
    }

    static KernelFor<T> kernel_for() {
        return {.launch = launch, .why_not = why_not, .resources = resources};
    }
};

std::string constraint(const Shape&) {
    return course::why_no_hopper();
}

template <class Plan>
Version version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = {.half = Launch<Plan, __half>::kernel_for(),
                         .bfloat16 = Launch<Plan, __nv_bfloat16>::kernel_for()},
            .work = course::half_matmul::work_of,
            .constraint = constraint};
}

// --- The tile that suits the shape ----------------------------------------------------------------------------------------

template <class Plan>
Tiling tiling(double tile, double step) {
    using S = typename Plan::template Tile<__half>;
    return {.rows = S::BM * S::SHARERS,
            .columns = S::BN,
            .cluster = S::CLUSTER,
            .splits = S::SPLITS,
            .tile = tile,
            .step = step};
}

struct Candidate {
    Version version;
    Tiling tiling;
};

// From runs with one round of tiles and different K, on an H200: what grows with K is the steps', the rest, but for two microseconds of the
// launch, the tile's.
const std::vector<Candidate>& candidates() {
    const auto candidate = []<class Plan>(const char* name, Plan, double tile, double step) {
        return Candidate{version<Plan>(name, "of those that `fitted` chooses from"),
                         tiling<Plan>(tile, step)};
    };
    static const std::vector<Candidate> list = {
        candidate("async_store", AsyncStore{}, 4.0, 0.69),
        candidate("tile_192x192", AnyTile<192, 192, 4, 2>{}, 4.3, 0.76),
        candidate("tile_192x96", AnyTile<192, 96, 4, 2>{}, 3.4, 0.43),
        candidate("tile_128x128", AnyTile<128, 128, 6, 2>{}, 2.8, 0.36),
        candidate("tile_64x128", AnyTile<64, 128, 8, 1>{}, 2.0, 0.27),
        candidate("tile_64x64", AnyTile<64, 64, 12, 1>{}, 1.2, 0.17),
        candidate("split_k", SplitK<128, 128, 6>{}, 3.7, 0.40),
        candidate("split_k_64x64", SplitK<64, 64, 12>{}, 2.1, 0.16)};
    return list;
}

const Version& fastest_tile(const Shape& shape, std::size_t multiprocessors) {
    return std::ranges::min_element(
               candidates(), {},
               [&](const Candidate& candidate) { return candidate.tiling.time(shape, multiprocessors); })
        ->version;
}

template <class T>
const KernelFor<T>& fitting(const Gemm<T>& gemm) {
    return kernel_of<T>(fastest_tile({.m = gemm.c.rows(), .n = gemm.c.cols(), .k = gemm.a.cols()},
                                     course::multiprocessors()));
}

template <class T>
KernelFor<T> fitted() {
    return {.launch = [](const Gemm<T>& gemm, cudaStream_t stream) { fitting(gemm).launch(gemm, stream); },
            .why_not = [](const Gemm<T>& gemm) { return fitting(gemm).why_not(gemm); },
            .resources = nullptr};  // those of the tile that it takes
}

// --- Rows that begin anywhere ---------------------------------------------------------------------------------------------

// C needs no copy: versions that store from registers take any.
template <class T>
void launch_realigned(const Gemm<T>& unchecked, cudaStream_t stream) {
    const Gemm<T> gemm = checked("hopper_matmul", unchecked);
    if (gemm.c.rows() == 0 || gemm.c.cols() == 0) return;
    const Reachable<T> a(gemm.a, stream);
    const Reachable<T> b(gemm.b, stream);
    const Gemm<T> reachable{
        .a = a.matrix(), .b = b.matrix(), .c = gemm.c, .alpha = gemm.alpha, .beta = gemm.beta};
    const KernelFor<T>& fitted = fitting(reachable);
    if (fitted.why_not(reachable).empty()) return fitted.launch(reachable, stream);
    const std::size_t large =
        course::ceil_div<std::size_t>(gemm.c.rows(), 256) * course::ceil_div<std::size_t>(gemm.c.cols(), 256);
    const auto launch = large * 2 < course::multiprocessors() ? Launch<Specialised, T>::launch
                                                              : Launch<Persistent, T>::launch;
    launch(reachable, stream);
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
        version<Specialised>("specialised", "a warpgroup that copies, two that multiply"),
        version<WideTile>("wide_tile", "128 x 256 results of a block, registers shared out anew"),
        version<Multicast>("multicast", "two blocks of a cluster share B"),
        version<Persistent>("persistent", "blocks that stay, tiles in bands"),
        version<AsyncStore>("async_store", "C stored through shared memory by TMA"),
        version<SplitK<128, 128, 6>>("split_k", "two blocks share out K"),
        {.name = "fitted",
         .idea = "the tile that suits the shape",
         .launcher = {.half = fitted<__half>(), .bfloat16 = fitted<__nv_bfloat16>()},
         .work = course::half_matmul::work_of,
         .constraint = constraint},
        {.name = "realigned",
         .idea = "rows that TMA cannot reach are copied first",
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
    return fastest_tile(shape, multiprocessors).name;
}

}  // namespace day41
