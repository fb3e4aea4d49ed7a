// Day 48's host code: the launches and the list of versions. Argument checks and the layout of the
// scratch memory are in beyond/launch_lists.cuh; the kernels and their launches in top_k.cuh and
// beyond/.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "beyond/fused.cuh"
#include "beyond/launch_lists.cuh"
#include "beyond/list_best_wgmma.hpp"
#include "beyond/rows_after.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "top_k.cuh"
#include "top_k.hpp"

namespace day48 {
namespace {

static_assert(kMostSelected == kMostBest);

// OWN_BOUNDS: blocks do not share their thresholds.
template <bool OWN_BOUNDS>
void fused(const TopKMatmul& matmul, cudaStream_t stream) {
    const ScratchLayout layout = checked_layout(matmul);
    if (layout.rows == 0) return;
    require_scratch(matmul, layout.fused_words());
    launch_with_lists(matmul, layout, stream, [&](const course::Distance& distance, const RowLists& lists) {
        course::with_add(matmul.metric, [&]<class Add>(Add) {
            const auto launch = OWN_BOUNDS ? launch_list_best_of_block<Add> : launch_list_best<Add>;
            launch(matmul.operands, distance, sign_of(matmul.order), lists, stream);
        });
    });
}

// `fused`, where tensor cores cannot or should not multiply.
void fused_wgmma(const TopKMatmul& matmul, cudaStream_t stream) {
    const ScratchLayout layout = checked_layout(matmul);
    if (layout.rows == 0) return;
    require_scratch(matmul, layout.wgmma_words());
    if (!why_no_wgmma(matmul).empty()) return fused<false>(matmul, stream);
    launch_with_lists(matmul, layout, stream, [&](const course::Distance& distance, const RowLists& lists) {
        launch_list_best_wgmma(matmul, distance, sign_of(matmul.order), lists,
                               matmul.scratch.data() + layout.fused_words(), stream);
    });
}

// The matrix of distances, in the scratch memory.
RowsOfDistances all_distances(const TopKMatmul& matmul, const ScratchLayout& layout, cudaStream_t stream) {
    require_scratch(matmul, layout.unfused_words());
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + layout.norm_words);
    course::launch_distances(matmul.metric, matmul.operands, matmul.scratch.data(), distances, stream);
    return {distances, layout.n, sign_of(matmul.order)};
}

// kLaunch: launch_k_minima or launch_unfused.
template <auto kLaunch>
void from_matrix(const TopKMatmul& matmul, cudaStream_t stream) {
    const ScratchLayout layout = checked_layout(matmul);
    if (layout.rows == 0) return;
    const RowsOfDistances rows = all_distances(matmul, layout, stream);
    kLaunch(rows, layout.rows, layout.size.k, matmul.values.data(), matmul.indices.data(), stream);
    CUDA_CHECK_LAUNCH();
}

std::size_t unfused_size(const TopKShape& shape) {
    return ScratchLayout(shape).unfused_words();
}
std::size_t fused_size(const TopKShape& shape) {
    return ScratchLayout(shape).fused_words();
}

std::size_t wgmma_size(const TopKShape& shape) {
    return ScratchLayout(shape).wgmma_words();
}

course::Work work(const TopKShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto d = static_cast<double>(shape.d);
    const double results = count * m * static_cast<double>(shape.k);
    const double written = (sizeof(float) + sizeof(std::uint32_t)) * results;
    return {.bytes = sizeof(float) * count * (m * d + d * n) + written,
            .written = written,
            .flops = (shape.metric == course::Metric::kDifferences ? 3 : 2) * count * m * n * d};
}

// Not compared with the limit of FP32.
course::Work tensor_work(const TopKShape& shape) {
    course::Work same = work(shape);
    same.arithmetic = course::Arithmetic::kOther;
    return same;
}

}  // namespace

void launch_select_pieces(const RowsOfPieces& rows, std::size_t count, unsigned k, float sign, float* values,
                          std::uint32_t* indices, cudaStream_t stream) {
    launch_select_best(rows, count, k, sign, values, indices, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_select_after(const RowsAfter& rows, std::size_t count, unsigned k, float* values,
                         std::uint32_t* indices, cudaStream_t stream) {
    launch_select_best(rows, count, k, rows.sign, values, indices, stream);
    CUDA_CHECK_LAUNCH();
}

std::string name(Order order) {
    switch (order) {
        case Order::kSmallest:
            return "smallest";
        case Order::kLargest:
            return "largest";
    }
    throw std::invalid_argument("name: no such order: " + std::to_string(static_cast<int>(order)));
}

std::span<const TopK> top_k_versions() {
    static const std::array list = {
        TopK{.name = "k_minima",
             .idea = "all distances, then k minima of each row",
             .launcher = {from_matrix<launch_k_minima>, unfused_size},
             .work = work},
        TopK{.name = "unfused",
             .idea = "all distances, then a selection in one pass over each row",
             .launcher = {from_matrix<launch_unfused>, unfused_size},
             .work = work},
        TopK{.name = "fused_own_bounds",
             .idea = "the epilogue lists what may be among the best",
             .launcher = {fused<true>, fused_size},
             .work = work},
        TopK{.name = "fused",
             .idea = "the same, and blocks publish thresholds",
             .launcher = {fused<false>, fused_size},
             .work = work},
        TopK{.name = "fused_wgmma",
             .idea = "tensor cores multiply, in FP32 accuracy",
             .launcher = {fused_wgmma, wgmma_size},
             .work = tensor_work,
             .constraint = [](const TopKShape&) { return course::why_no_hopper(); }},
    };
    return list;
}

}  // namespace day48
