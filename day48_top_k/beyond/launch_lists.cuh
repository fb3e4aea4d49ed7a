// Day 48: what the launches of all versions share: argument checks, the layout of the scratch
// memory, and the launches of the fused versions around the kernel that lists the best.
//
// E: the type of the operands' elements, float or 16 bits.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/tile/distance.cuh"
#include "list_best_wgmma.hpp"
#include "row_lists.cuh"
#include "top_k.hpp"

namespace day48 {

// As many blocks as run at the same time, or fewer if they share the rows better. Starting a row,
// when every element is listed, takes a block about kStart steps of the main loop; the epilogue of
// a tile takes kEnd steps.
inline EqualShares equal_shares(std::size_t m, std::size_t n, std::size_t d, std::size_t count) {
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

template <class E>
ScratchLayout checked_layout(const TopKMatmulOf<E>& matmul) {
    const course::OperandsOf<E>& operands = matmul.operands;
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

template <class E>
void require_scratch(const TopKMatmulOf<E>& matmul, std::size_t needed) {
    course::require(matmul.scratch.size() >= needed, "top-k matmul: scratch has ", matmul.scratch.size(),
                    " elements; expected at least ", needed);
}

inline float sign_of(Order order) {
    return order == Order::kSmallest ? 1 : -1;
}

// Queues select_best (top_k.cuh): a block for each of `count` rows. In top_k.cu.
void launch_select_pieces(const RowsOfPieces& rows, std::size_t count, unsigned k, float sign, float* values,
                          std::uint32_t* indices, cudaStream_t stream);

// list(distance, lists) launches the kernel that lists the best of each block.
template <class E, class List>
void launch_with_lists(const TopKMatmulOf<E>& matmul, const ScratchLayout& layout, cudaStream_t stream,
                       const List& list) {
    Key* const lists = matmul.scratch.data() + layout.norm_words;
    Key* const keys = lists + layout.list_words();
    auto* const ranks = reinterpret_cast<unsigned*>(keys + layout.piece_words());
    CUDA_CHECK(cudaMemsetAsync(ranks, 0xff, layout.piece_rows() * sizeof *ranks, stream));
    const Pieces pieces{layout.tiles, layout.size.kept, keys, ranks};
    list(course::launch_distance(matmul.metric, matmul.operands, matmul.scratch.data(), stream),
         RowLists{layout.size, lists, pieces, matmul.operands.m(), matmul.operands.n()});
    launch_select_pieces(RowsOfPieces{pieces, matmul.operands.m()}, layout.rows, layout.size.k,
                         sign_of(matmul.order), matmul.values.data(), matmul.indices.data(), stream);
}

}  // namespace day48
