// Day 48, beyond: host code of half_lists.cuh, the choice of half_wgmma, and the list of versions.
#include <array>
#include <string>

#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "half_lists.cuh"
#include "half_lists_wgmma.hpp"
#include "half_top_k.hpp"
#include "launch_lists.cuh"

namespace day48 {
namespace {

template <class E, int STAGES>
std::string why_not() {
    using L = HalfTile<E, STAGES>;
    const std::string reason = course::why_no_tensor_cores(list_best_half<L, true>, half_mma::kStages<L>);
    // The CPU backend knows the static shared memory of a kernel, its rows, after the first launch.
    return reason.empty() ? course::why_too_little_shared(half_mma::kStages<L> + sizeof(RowState)) : reason;
}

template <class E, int STAGES>
void launch_with(const TopKMatmulOf<E>& matmul, const ScratchLayout& layout, cudaStream_t stream) {
    using L = HalfTile<E, STAGES>;
    const bool aligned =
        half_mma::has_aligned_rows(matmul.operands.a) && half_mma::has_aligned_rows(matmul.operands.b);
    launch_with_lists(matmul, layout, stream, [&](const course::Distance& distance, const RowLists& lists) {
        const auto launch = aligned ? launch_list_best_half<L, true> : launch_list_best_half<L, false>;
        launch(matmul.operands, distance, sign_of(matmul.order), lists, stream);
    });
}

template <class E>
ScratchLayout checked_half_layout(const TopKMatmulOf<E>& matmul) {
    const ScratchLayout layout = checked_layout(matmul);
    const course::OperandsOf<E>& operands = matmul.operands;
    course::require(operands.op_a == course::Op::kNone && operands.op_b == course::Op::kTranspose,
                    "top-k matmul: the layout is ", operands.op_a == course::Op::kNone ? "N" : "T",
                    operands.op_b == course::Op::kNone ? "N" : "T",
                    "; expected NT for 16-bit operands: rows of A and rows of B along K");
    course::require(matmul.metric != course::Metric::kDifferences, "top-k matmul: the metric is ",
                    name(matmul.metric), ", which is no product; expected dot, squared_l2 or cosine");
    course::require(operands.k() > 0, "top-k matmul: vectors have 0 numbers; expected at least 1");
    return layout;
}

template <class E>
void launch_mma(const TopKMatmulOf<E>& matmul, cudaStream_t stream) {
    const ScratchLayout layout = checked_half_layout(matmul);
    const std::string reason = why_not<E, 2>();
    course::require(reason.empty(), "top-k matmul: half_mma ", reason);
    if (layout.rows == 0) return;
    require_scratch(matmul, layout.fused_words());
    why_not<E, 3>().empty() ? launch_with<E, 3>(matmul, layout, stream)
                            : launch_with<E, 2>(matmul, layout, stream);
}

// `half_mma`, where TMA cannot load the operands.
template <class E>
void launch_wgmma(const TopKMatmulOf<E>& matmul, cudaStream_t stream) {
    const ScratchLayout layout = checked_half_layout(matmul);
    if (layout.rows == 0) return;
    if (!why_no_half_wgmma(matmul.operands).empty()) return launch_mma(matmul, stream);
    require_scratch(matmul, layout.fused_words());
    launch_with_lists(matmul, layout, stream, [&](const course::Distance& distance, const RowLists& lists) {
        launch_list_best_half_wgmma(matmul.operands, distance, sign_of(matmul.order), lists, stream);
    });
}

std::size_t scratch_size(const TopKShape& shape) {
    return ScratchLayout(shape).fused_words();
}

// Not compared with the limit of FP32.
course::Work work(const TopKShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto d = static_cast<double>(shape.d);
    const double written = (sizeof(float) + sizeof(std::uint32_t)) * count * m * static_cast<double>(shape.k);
    return {.bytes = 2 * count * (m * d + d * n) + written,
            .written = written,
            .flops = 2 * count * m * n * d,
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

template <class E>
std::span<const HalfTopK<E>> half_top_k_versions() {
    static const std::array list = {
        HalfTopK<E>{
            .name = "half_mma",
            .idea = "mma.sync multiplies 16-bit operands, the epilogue lists what may be among the best",
            .launcher = {launch_mma<E>, scratch_size},
            .work = work,
            .constraint = [](const TopKShape&) { return why_not<E, 2>(); }},
        HalfTopK<E>{.name = "half_wgmma",
                    .idea = "Hopper: TMA loads, wgmma multiplies, warps list without a barrier",
                    .launcher = {launch_wgmma<E>, scratch_size},
                    .work = work,
                    .constraint = [](const TopKShape&) { return course::why_no_hopper(); }},
    };
    return list;
}

template std::span<const HalfTopK<__half>> half_top_k_versions<__half>();
template std::span<const HalfTopK<__nv_bfloat16>> half_top_k_versions<__nv_bfloat16>();

}  // namespace day48
