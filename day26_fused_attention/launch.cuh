// Code that all launches share: the versions of other files, the choice of a tile, the grid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "fused_attention.hpp"

namespace day26 {

Version<float> tf32x3();  // beyond/tf32x3.cu
template <class T>
Version<T> tensor_cores();  // beyond/half_precision.cu

// Calls `launch` with the first of the ascending DIMS that is at least `dim`, as a compile-time
// constant.
template <int FIRST, int... MORE, class Launch>
void with_dim(std::size_t dim, Launch launch) {
    if constexpr (sizeof...(MORE) > 0) {
        if (dim > FIRST) {
            with_dim<MORE...>(dim, launch);
            return;
        }
    }
    launch(std::integral_constant<int, FIRST>());
}

// Blocks that run at the same time should read the same K and V, so that these stay in the L2
// cache: `heads_at_once` heads are computed together. Within these, the last rows start first,
// because a causal mask leaves them the most keys, and a long block that starts last would delay
// the end of the grid.
struct Grid {
    unsigned blocks = 0;
    unsigned heads_at_once = 1;
};

// Throws std::invalid_argument if a grid cannot have so many blocks.
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

// Launches `kernel` with a block for every BM rows.
template <int BM, class Kernel, class T>
void launch_tiles(Kernel* kernel, int threads, std::size_t shared, const Attention<T>& attention,
                  cudaStream_t stream) {
    const Grid grid = grid_of<BM>(attention);
    course::launch(kernel, {grid.blocks, static_cast<unsigned>(threads), shared, stream}, attention,
                   grid.heads_at_once);
}

}  // namespace day26
