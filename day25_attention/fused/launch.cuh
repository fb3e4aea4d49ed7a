// How the tiled versions are launched.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "versions.hpp"

namespace day25::fused {

// Blocks that run at the same time should read the same K and V, so that these stay in the L2 cache. So heads are taken a few at a time;
// within these, the last rows come first: with a causal mask they have most to do, and what is started last should be short.
struct Grid {
    unsigned blocks = 0;
    unsigned heads_at_once = 1;
};

// Throws std::invalid_argument when a grid cannot have that many blocks.
template <int BM, class T>
Grid grid_of(const Attention<T>& attention) {
    constexpr std::size_t kShareOfL2 = std::size_t{16} << 20;  // bytes
    const Extents q = attention.q.extents();
    const Extents k = attention.k.extents();
    const std::size_t heads = q.batch * q.heads;
    const std::size_t bytes = 2 * k.length * k.dim * sizeof(T) * k.heads / q.heads;  // for each head of Q
    const std::size_t at_once = kShareOfL2 / std::max<std::size_t>(bytes, 1);
    return {course::blocks_for(heads * course::ceil_div<std::size_t>(q.length, BM), 1),
            static_cast<unsigned>(std::clamp<std::size_t>(at_once, 1, heads))};
}

// A block of `kernel` for each BM rows.
template <int BM, class Kernel, class T>
void launch_tiles(Kernel* kernel, int threads, std::size_t shared, const Attention<T>& attention,
                  cudaStream_t stream) {
    const Grid grid = grid_of<BM>(attention);
    course::launch(kernel, {grid.blocks, static_cast<unsigned>(threads), shared, stream}, attention,
                   grid.heads_at_once);
}

}  // namespace day25::fused
