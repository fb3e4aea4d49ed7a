// Day 48's host code: argument checks, the layout of the scratch memory, the list of versions. The
// kernels and their launches are in top_k.cuh and beyond/.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "beyond/fused.cuh"
#include "beyond/list_best_wgmma.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "top_k.cuh"
#include "top_k.hpp"

namespace day48 {
namespace {

static_assert(kMostSelected == kMostBest);

// As many blocks as run at the same time, or fewer if they share the rows better. Starting a row,
// when every element is listed, takes a block about kStart steps of the main loop; the epilogue of
// a tile takes kEnd steps.
EqualShares equal_shares(std::size_t m, std::size_t n, std::size_t d, std::size_t count) {
    constexpr std::size_t kStart = 120;
    constexpr std::size_t kEnd = 3;
    const std::size_t down = course::ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(n, T::BN);
    const std::size_t rows = down * count;
    const std::size_t all = course::blocks_for(rows * across, 1);
    const auto time = [&](std::size_t blocks) {
        // Rows of tiles of the block with the most of them.
        const std::size_t begun = blocks % rows == 0   ? 1
                                  : rows % blocks == 0 ? rows / blocks
                                                       : rows / blocks + 2;
        return course::ceil_div(all, blocks) * (course::ceil_div<std::size_t>(d, T::BK) + kEnd) +
               begun * kStart;
    };
    const std::size_t most = std::min<std::size_t>(all, course::multiprocessors());
    std::size_t best = std::min<std::size_t>(most, 1);
    for (std::size_t blocks = 2; blocks <= most; ++blocks) {
        if (time(blocks) <= time(best)) best = blocks;
    }
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), static_cast<unsigned>(all),
            static_cast<unsigned>(best)};
}

// The scratch memory: the norms; then the lists and pieces of the blocks, or the matrix of
// distances.
struct ScratchLayout {
    std::size_t rows;  // of all products
    std::size_t n;
    std::size_t queries_words;
    std::size_t norm_words;
    EqualShares tiles;
    ListSize size;

    explicit ScratchLayout(const TopKShape& shape)
        : rows(shape.m * shape.count),
          n(shape.n),
          queries_words(transposed_words(shape.m, shape.d)),
          norm_words(
              course::ceil_div<std::size_t>(course::norms_size(shape.metric, shape.m, n, shape.count), 2)),
          tiles(equal_shares(shape.m, n, shape.d, shape.count)),
          size(shape.k) {
        course::require(shape.k >= 1 && shape.k <= kMostBest, "top-k matmul: k is ", shape.k,
                        "; expected 1 to ", kMostBest);
        course::require(shape.k <= n, "top-k matmul: k is ", shape.k, ", but there are ", n,
                        " columns of op(B) to choose from; expected at most as many");
    }

    std::size_t list_words() const { return std::size_t{tiles.blocks} * T::BM * size.room; }
    std::size_t piece_rows() const {
        return tiles.all == 0 ? 0 : (tiles.all / tiles.across + tiles.blocks - 1) * T::BM;
    }
    std::size_t piece_words() const { return piece_rows() * size.kept; }
    std::size_t rank_words() const { return course::ceil_div<std::size_t>(piece_rows(), 2); }
    std::size_t fused_words() const { return norm_words + list_words() + piece_words() + rank_words(); }
    std::size_t wgmma_words() const { return fused_words() + queries_words; }
    std::size_t unfused_words() const { return norm_words + course::ceil_div<std::size_t>(rows * n, 2); }
};

ScratchLayout checked_layout(const TopKMatmul& matmul) {
    const course::Operands& operands = matmul.operands;
    course::check_operands(operands, "top-k matmul");
    const ScratchLayout layout(
        TopKShape{operands.m(), operands.n(), operands.k(), operands.count(), matmul.k, matmul.metric});
    const std::size_t results = layout.rows * matmul.k;
    const auto require_size = [&](std::string_view name, std::size_t size) {
        course::require(size == results, "top-k matmul: ", name, " has ", size, " elements; expected ",
                        results, ", ", matmul.k, " for each row");
    };
    require_size("values", matmul.values.size());
    require_size("indices", matmul.indices.size());
    return layout;
}

void require_scratch(const TopKMatmul& matmul, std::size_t needed) {
    course::require(matmul.scratch.size() >= needed, "top-k matmul: scratch has ", matmul.scratch.size(),
                    " elements; expected at least ", needed);
}

float sign_of(Order order) {
    return order == Order::kSmallest ? 1 : -1;
}

// list(distance, lists) launches the kernel that lists the best of each block.
template <class List>
void launch_with_lists(const TopKMatmul& matmul, const ScratchLayout& layout, cudaStream_t stream,
                       const List& list) {
    Key* const lists = matmul.scratch.data() + layout.norm_words;
    Key* const keys = lists + layout.list_words();
    auto* const ranks = reinterpret_cast<unsigned*>(keys + layout.piece_words());
    CUDA_CHECK(cudaMemsetAsync(ranks, 0xff, layout.piece_rows() * sizeof *ranks, stream));
    const Pieces pieces{layout.tiles, layout.size.kept, keys, ranks};
    list(course::launch_distance(matmul.metric, matmul.operands, matmul.scratch.data(), stream),
         RowLists{layout.size, lists, pieces, matmul.operands.m(), matmul.operands.n()});
    launch_select_best(RowsOfPieces{pieces, matmul.operands.m()}, layout.rows, layout.size.k,
                       sign_of(matmul.order), matmul.values.data(), matmul.indices.data(), stream);
    CUDA_CHECK_LAUNCH();
}

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
