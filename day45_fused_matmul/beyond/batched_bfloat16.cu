// Day 45, beyond: host code of the products in BF16 and FP16. The kernels and their launches are in
// batched_bfloat16.cuh and batched_wgmma.cuh.
#include <algorithm>
#include <array>
#include <string>

#include "batched.cuh"
#include "batched_bfloat16.cuh"
#include "batched_wgmma.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "common/tile/few_results.hpp"
#include "common/tile/unaligned_matmul.hpp"

namespace day45 {
namespace {

template <class T>
std::string needs_tensor_cores(const Shape&) {
    using L = Layout<T, true, false>;
    return course::why_no_tensor_cores(multiply_on_tensor_cores<L>, kMmaShared<L>);
}

template <class T>
void require_countable(const BatchedMatmulOf<T>& matmul) {
    const auto& operands = matmul.operands;
    constexpr std::size_t kMost = (std::size_t{1} << 31) - 1024;  // counted in int, with room for a tile
    course::require(std::max({operands.m(), operands.n(), operands.k()}) <= kMost,
                    "batched matmul: m, n and k are ", operands.m(), " x ", operands.n(), " x ", operands.k(),
                    "; expected each at most ", kMost, " on tensor cores");
}

template <class T, bool PERSISTENT>
void launch_tiles(const BatchedMatmulOf<T>& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const auto& operands = matmul.operands;
    require_countable(matmul);
    const bool b_is_k_major = operands.op_b == course::Op::kTranspose;
    const auto launch =
        operands.op_a == course::Op::kNone
            ? (b_is_k_major ? launch_multiply_on_tensor_cores<Layout<T, true, true>, PERSISTENT>
                            : launch_multiply_on_tensor_cores<Layout<T, true, false>, PERSISTENT>)
            : (b_is_k_major ? launch_multiply_on_tensor_cores<Layout<T, false, true>, PERSISTENT>
                            : launch_multiply_on_tensor_cores<Layout<T, false, false>, PERSISTENT>);
    launch(matmul, stream);
}

// Other GPUs than Hopper's: as `pipelined`.
void launch_wgmma_or_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    if (!course::why_no_hopper().empty()) return launch_tiles<__nv_bfloat16, true>(matmul, stream);
    require_countable(matmul);
    const auto& operands = matmul.operands;
    const Shape shape{operands.count(), operands.m(), operands.n(), operands.k()};
    const bool aligned = why_no_tensor_maps(operands).empty();
    const double in_tiles = aligned ? time_of_wgmma(shape) : course::time_of_unaligned(shape);
    const course::FewResultsPlan few = course::plan_few_results(shape, course::multiprocessors());
    if (few.microseconds < in_tiles) {
        course::multiply_few(few, operands, matmul.c, matmul.alpha, matmul.beta, stream);
    } else if (aligned) {
        launch_wgmma(matmul, stream);
    } else {
        course::multiply_unaligned(operands, matmul.c, matmul.alpha, matmul.beta, stream);
    }
}

// On Hopper, for any shape: tile TILE of those for aligned rows, or of those for other rows, which
// are fewer.
template <std::size_t TILE>
void launch_tile(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    require_countable(matmul);
    if (why_no_tensor_maps(matmul.operands).empty()) {
        launch_wgmma_with(TILE, matmul, stream);
    } else {
        course::multiply_unaligned_with(TILE % course::kUnalignedTiles, matmul.operands, matmul.c,
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
                        .launcher = launch_tiles<__nv_bfloat16, false>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores<__nv_bfloat16>},
        BatchedBfloat16{.name = "pipelined",
                        .idea = "a block goes from tile to tile, and its copies do not wait for it",
                        .launcher = launch_tiles<__nv_bfloat16, true>,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores<__nv_bfloat16>},
        BatchedBfloat16{.name = "wgmma",
                        .idea = "wgmma; TMA loads aligned rows, threads others",
                        .launcher = launch_wgmma_or_tiles,
                        .work = work<__nv_bfloat16>,
                        .constraint = needs_tensor_cores<__nv_bfloat16>},
    };
    return list;
}

std::span<const BatchedHalf> half_versions() {
    static const std::array list = {
        BatchedHalf{.name = "tile_each",
                    .idea = "a block for each tile, mma.sync",
                    .launcher = launch_tiles<__half, false>,
                    .work = work<__half>,
                    .constraint = needs_tensor_cores<__half>},
        BatchedHalf{.name = "pipelined",
                    .idea = "a block goes from tile to tile, and its copies do not wait for it",
                    .launcher = launch_tiles<__half, true>,
                    .work = work<__half>,
                    .constraint = needs_tensor_cores<__half>},
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
