// Host code of the grouped GEMM on tensor cores: checks, the choice by alignment, and the list of
// versions. The kernels and their launches are in grouped.cuh.
#include <array>
#include <string>

#include "common/check/check.hpp"
#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/device/tensor_core_support.hpp"
#include "grouped.cuh"
#include "grouped.hpp"
#include "layer_check.hpp"

namespace day27 {
namespace {

std::string needs_tensor_cores(const Shape&) {
    return course::why_no_tensor_cores(multiply_groups<true>, kGroupShared);
}

template <bool kPersistent>
void run(const Bfloat16Layer& layer, Workspace& workspace, cudaStream_t stream) {
    if (!check(layer, workspace)) return;
    const Shape& shape = layer.shape;
    sort_by_expert(shape, layer.logits.data(), workspace, stream);
    const GroupedTask task{
        layer.x.data(),
        {.first = course::DeviceMatrix<const __nv_bfloat16>(layer.weights, shape.hidden, shape.width),
         .count = shape.experts,
         .stride = shape.hidden * shape.width},
        workspace.result.data(),
        workspace.starts.data(),
        workspace.pair_at.data(),
        workspace.tiles.data(),
        static_cast<int>(shape.hidden),
        static_cast<int>(shape.width),
        static_cast<int>(shape.experts),
        static_cast<int>(shape.chosen)};
    const bool aligned = shape.hidden % 8 == 0 && shape.width % 8 == 0 && course::is_aligned(task.x, 16) &&
                         course::is_aligned(layer.weights.data(), 16);
    const auto launch = aligned ? launch_groups<true, kPersistent> : launch_groups<false, kPersistent>;
    launch(task, static_cast<int>(shape.pairs()), stream);
    combine_results(shape, workspace.gate.data(), workspace.place.data(), workspace.result.data(),
                    layer.out.data(), stream);
}

// As in the core, but x and weights have two bytes.
course::Work work_of(const Shape& shape) {
    const auto written = static_cast<double>(shape.tokens * shape.width * sizeof(float));
    const auto read = static_cast<double>(
        shape.tokens * shape.experts * sizeof(float) +
        (shape.tokens * shape.hidden + shape.experts * shape.hidden * shape.width) * sizeof(__nv_bfloat16));
    return {
        .bytes = read + written,
        .written = written,
        .flops = 2.0 * static_cast<double>(shape.pairs()) * static_cast<double>(shape.hidden * shape.width),
        .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

std::span<const GroupedVersion> grouped_versions() {
    static const std::array list = {
        GroupedVersion{.name = "tile_each",
                       .idea = "a block for each tile of the list, mma.sync",
                       .launcher = run<false>,
                       .work = work_of,
                       .constraint = needs_tensor_cores},
        GroupedVersion{.name = "persistent",
                       .idea = "a block goes from tile to tile, and its copies do not wait for it",
                       .launcher = run<true>,
                       .work = work_of,
                       .constraint = needs_tensor_cores},
    };
    return list;
}

}  // namespace day27
