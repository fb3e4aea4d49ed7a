// Day 45: the launchers of batched_bfloat16.cuh.
#include <algorithm>
#include <array>
#include <string>

#include "batched.cuh"
#include "batched_bfloat16.cuh"
#include "batched_wgmma.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "common/tile/unaligned_matmul.hpp"

namespace day45 {
namespace {

constexpr std::size_t kShared =
    (WarpTile::BM + WarpTile::BN) * WarpTile::BK * sizeof(WarpTile::T) * WarpTile::STAGES;

using Kernel = void (*)(Bfloat16Matmul, course::EveryTile<WarpTile>);

Kernel kernel_for(course::Op op_a, course::Op op_b) {
    const bool a_is_k_major = op_a == course::Op::kNone;
    const bool b_is_k_major = op_b == course::Op::kTranspose;
    if (a_is_k_major)
        return b_is_k_major ? multiply_on_tensor_cores<Layout<true, true>>
                            : multiply_on_tensor_cores<Layout<true, false>>;
    return b_is_k_major ? multiply_on_tensor_cores<Layout<false, true>>
                        : multiply_on_tensor_cores<Layout<false, false>>;
}

std::string needs_tensor_cores(const Shape&) {
    return course::why_no_tensor_cores(kernel_for(course::Op::kNone, course::Op::kNone), kShared);
}

void require_countable(const Bfloat16Matmul& matmul) {
    const auto& factors = matmul.factors;
    constexpr std::size_t kMost = (std::size_t{1} << 31) - 1024;  // counted in int, with room for a tile
    course::require(std::max({factors.m(), factors.n(), factors.k()}) <= kMost,
                    "batched matmul: m, n and k are ", factors.m(), " x ", factors.n(), " x ", factors.k(),
                    "; expected each at most ", kMost, " on tensor cores");
}

template <bool PERSISTENT>
void launch_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const auto& factors = matmul.factors;
    require_countable(matmul);
    const Kernel kernel = kernel_for(factors.op_a, factors.op_b);
    course::allow_shared_bytes(kernel, kShared);
    const auto walk = course::every_tile<WarpTile>(factors.m(), factors.n(), factors.count());
    const unsigned resident = course::resident_blocks(kernel, WarpTile::THREADS, kShared);
    const unsigned blocks = PERSISTENT ? std::min(walk.all, resident) : walk.all;
    course::launch(kernel, {blocks, WarpTile::THREADS, kShared, stream}, matmul, walk);
}

// Other GPUs than Hopper's: as `pipelined`.
void launch_wgmma_or_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    if (!course::why_no_hopper().empty()) return launch_tiles<true>(matmul, stream);
    require_countable(matmul);
    if (why_no_tensor_maps(matmul.factors).empty()) {
        launch_wgmma(matmul, stream);
    } else {
        course::multiply_unaligned(matmul.factors, matmul.c, matmul.alpha, matmul.beta, stream);
    }
}

// On Hopper, for any shape: tile TILE of those for aligned rows, or of those for other rows, which
// are fewer.
template <std::size_t TILE>
void launch_tile(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    require_countable(matmul);
    if (why_no_tensor_maps(matmul.factors).empty()) {
        launch_wgmma_with(TILE, matmul, stream);
    } else {
        course::multiply_unaligned_with(TILE % course::kUnalignedTiles, matmul.factors, matmul.c,
                                        matmul.alpha, matmul.beta, stream);
    }
}
static_assert(kWgmmaTiles == 4 && course::kUnalignedTiles <= 4, "wgmma_tiles() has them all");

std::string needs_hopper(const Shape&) {
    return course::why_no_hopper();
}

}  // namespace

std::span<const BatchedBfloat16> bfloat16_versions() {
    static const std::array list = {
        BatchedBfloat16{.name = "tile_each",
                        .idea = "a block for each tile, mma.sync",
                        .launcher = launch_tiles<false>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores},
        BatchedBfloat16{.name = "pipelined",
                        .idea = "a block goes from tile to tile, and its copies do not wait for it",
                        .launcher = launch_tiles<true>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores},
        BatchedBfloat16{.name = "wgmma",
                        .idea = "wgmma; TMA loads aligned rows, threads others",
                        .launcher = launch_wgmma_or_tiles,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores},
    };
    return list;
}

std::span<const BatchedBfloat16> wgmma_tiles() {
    static const std::array list = {
        BatchedBfloat16{"tile_0", "", launch_tile<0>, work<__nv_bfloat16>, needs_hopper},
        BatchedBfloat16{"tile_1", "", launch_tile<1>, work<__nv_bfloat16>, needs_hopper},
        BatchedBfloat16{"tile_2", "", launch_tile<2>, work<__nv_bfloat16>, needs_hopper},
        BatchedBfloat16{"tile_3", "", launch_tile<3>, work<__nv_bfloat16>, needs_hopper},
    };
    return list;
}

}  // namespace day45
