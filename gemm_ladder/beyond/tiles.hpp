// The tiles that the dispatcher (step 14) chooses from.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../sgemm.hpp"
#include "common/bench/occupancy.hpp"

namespace gemm {

// A tile, and the two ways to cover C with it.
struct TileKernels {
    std::string_view name;  // "128x256x8": BM x BN x BK
    int bm;
    int bn;
    int bk;
    int most_blocks;           // that an SM runs at the same time, where its shared memory suffices
    int threads;               // of a block
    std::size_t shared_bytes;  // of a block
    Kernel whole;              // a block for each tile (step 12)
    Kernel shared;             // equal shares (step 13)
    // Equal shares for `blocks` blocks, at most as many as run at the same time.
    void (*launch_shared_on)(unsigned blocks, const Sgemm& gemm, cudaStream_t stream);
};

// What the tuner measures of a tile, in microseconds, with 1, 2, ... blocks per SM. A step is one
// of BK columns along K.
inline constexpr std::size_t kMostBlocks = 8;
struct TileCost {
    std::string_view name;
    bool aligned;                                // rows of A, B and C
    std::array<double, kMostBlocks> whole_step;  // step 12: one step
    // All of a tile but its steps: launch, prologue, epilogue.
    std::array<double, kMostBlocks> whole;
    std::array<double, kMostBlocks> shared_step;  // step 13: one step
    // All of an equal share but its steps: the same, and the fix-up.
    std::array<double, kMostBlocks> shared;
    // What each owner of a shared tile adds to that.
    double owner;
};

// All of them. They come from two files, so that these are compiled at the same time.
std::span<const TileKernels> tiles();
std::vector<TileKernels> large_tiles();
std::vector<TileKernels> small_tiles();

// What the dispatcher must know of a GPU.
struct Gpu {
    unsigned multiprocessors = 0;
    int capability = 0;                   // 86: 8.6
    int clock_khz = 0;                    // the highest of the SMs; 0: not known
    course::MultiprocessorLimits limits;  // of an SM
};

// The current device.
Gpu current_gpu();

// How many blocks of a tile an SM runs at the same time: at most the tile's most_blocks. 0: it has
// too little shared memory for one.
int resident_blocks(const TileKernels& tile, const Gpu& gpu);

// How the dispatcher multiplies a shape.
struct Choice {
    const TileKernels* tile = nullptr;
    unsigned shared_by = 0;   // blocks with equal shares; 0: a block for each tile
    double microseconds = 0;  // as predicted
};

// The fastest of all tiles and both ways on that GPU, by the table of costs that ships (tune/); of
// those that are predicted to be about as fast, the largest tile. `aligned`: rows of A, B and C
// start at multiples of 16 bytes, and N and K are multiples of 4. Throws std::invalid_argument when
// the GPU has no multiprocessors, or too little shared memory for any tile.
Choice choose(const Shape& shape, bool aligned, const Gpu& gpu);

}  // namespace gemm
