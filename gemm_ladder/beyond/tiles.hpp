// The tiles that the dispatcher (step 14) chooses from.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../sgemm.hpp"

namespace gemm {

// A tile, and the two ways to cover C with it.
struct TileKernels {
    std::string_view name;  // "128x256x8": BM x BN x BK
    int bm;
    int bn;
    int bk;
    int most_blocks;  // that a multiprocessor runs at the same time, at most
    Kernel whole;     // a block for each tile (step 12)
    Kernel shared;    // equal shares (step 13)
    // Equal shares for `blocks` blocks, at most as many as run at the same time.
    void (*launch_shared_on)(unsigned blocks, const Sgemm& gemm, cudaStream_t stream);
};

// What the tuner measures of a tile, in microseconds, with 1, 2, ... blocks on each multiprocessor.
inline constexpr std::size_t kMostBlocks = 8;
struct TileCost {
    std::string_view name;
    bool aligned;                                // rows of A, B and C
    std::array<double, kMostBlocks> whole_step;  // a step of BK columns of A, in a whole tile
    std::array<double, kMostBlocks> whole;  // beside its steps, a whole tile: launch, first loads, writing C
    std::array<double, kMostBlocks> shared_step;  // a step of an equal share
    std::array<double, kMostBlocks> shared;       // beside its steps, an equal share: the same, and adding up
    double owner;                                 // what each block adds that shares a tile with others
};

std::span<const TileKernels> tiles();

// How the dispatcher multiplies a shape.
struct Choice {
    const TileKernels* tile = nullptr;
    unsigned shared_by = 0;   // blocks; 0: a block for each tile
    double microseconds = 0;  // as predicted
};

// The cheapest of all tiles and ways (of those that seem as cheap, the largest tile) on a device with so many multiprocessors, by the table of costs in tune/. `aligned`: rows of A, B
// and C begin at multiples of 16 bytes, and N and K are multiples of 4. Throws std::invalid_argument when `multiprocessors` is 0.
Choice choose(const Shape& shape, bool aligned, unsigned multiprocessors);

}  // namespace gemm
