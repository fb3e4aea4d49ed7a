// Makes the entries of tiles().
#pragma once

#include "multi_stage.cuh"
#include "stream_k.cuh"
#include "tiles.hpp"

namespace gemm {

template <class T, int BLOCKS>
TileKernels make_tile(std::string_view name) {
    static_assert(BLOCKS <= static_cast<int>(kMostBlocks),
                  "make_tile: the table of costs has no such column");
    return {.name = name,
            .bm = T::BM,
            .bn = T::BN,
            .bk = T::BK,
            .most_blocks = BLOCKS,
            .whole = MultiStage<T, BLOCKS>::kernel(),
            .shared = StreamK<T, BLOCKS>::kernel(),
            .launch_shared_on = StreamK<T, BLOCKS>::launch_on};
}

}  // namespace gemm
