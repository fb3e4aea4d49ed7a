// The tiles of steps 12 to 14. Step 14 compiles the kernels of 12 and 13 for each of them and
// chooses one.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../sgemm.hpp"
#include "common/tile/tile_shape.cuh"

namespace gemm {

// BLOCKS of them must fit on a multiprocessor at the same time.
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int COPY_AT, int BLOCKS_>
struct Tile : course::TileShape<BM, BN, BK, WM, WN, TM, TN, STAGES, COPY_AT> {
    static constexpr int BLOCKS = BLOCKS_;
};

template <class... T>
struct TileList {};

//                         BM   BN  BK  WM  WN  TM TN  STAGES COPY_AT BLOCKS
using Tile128x256x8 = Tile<128, 256, 8, 64, 64, 16, 8, 4, 3, 1>;  // step 12
using Tile128x128x8 = Tile<128, 128, 8, 64, 64, 16, 8, 4, 0, 2>;
using Tile64x128x16 = Tile<64, 128, 16, 32, 64, 8, 8, 3, 1, 3>;  // step 13
using Tile64x64x16 = Tile<64, 64, 16, 32, 64, 8, 8, 3, 1, 6>;
using Tile128x32x16 = Tile<128, 32, 16, 32, 32, 8, 4, 3, 1, 4>;
using Tile32x128x16 = Tile<32, 128, 16, 32, 32, 8, 4, 3, 1, 4>;
using Tile32x32x16 = Tile<32, 32, 16, 16, 32, 4, 4, 4, 1, 8>;
using AllTiles = TileList<Tile128x256x8, Tile128x128x8, Tile64x128x16, Tile64x64x16, Tile128x32x16,
                          Tile32x128x16, Tile32x32x16>;

// Equal shares for `blocks` blocks, at most as many as run at the same time.
using LaunchOn = void (*)(unsigned blocks, const Sgemm& gemm, cudaStream_t stream);
struct StreamK {
    Kernel kernel;
    LaunchOn launch_on;
};

// In the order of AllTiles: beyond/12_multi_stage.cu and beyond/13_stream_k.cu.
std::vector<Kernel> multi_stage_of_all_tiles();
std::vector<StreamK> stream_k_of_all_tiles();

// A tile, and the two ways to cover C with it.
struct TileKernels {
    std::string_view name;  // "128x256x8": BM x BN x BK
    int bm;
    int bn;
    int bk;
    int most_blocks;  // that a multiprocessor runs at the same time, at most
    Kernel whole;     // a block for each tile (step 12)
    Kernel shared;    // equal shares (step 13)
    LaunchOn launch_shared_on;
};

// What the tuner measures of a tile, in microseconds, with 1, 2, ... blocks on each multiprocessor.
inline constexpr std::size_t kMostBlocks = 8;
struct TileCost {
    std::string_view name;
    bool aligned;  // rows of A, B and C
    // A step of BK columns of A, in a whole tile.
    std::array<double, kMostBlocks> whole_step;
    // A whole tile without its steps: launch, prologue, epilogue.
    std::array<double, kMostBlocks> whole;
    // A step of an equal share.
    std::array<double, kMostBlocks> shared_step;
    // An equal share without its steps: launch, prologue, epilogue, fix-up.
    std::array<double, kMostBlocks> shared;
    // What each block adds that shares a tile with others.
    double owner;
};

std::span<const TileKernels> tiles();

// How the dispatcher multiplies a shape.
struct Choice {
    const TileKernels* tile = nullptr;
    unsigned shared_by = 0;   // blocks; 0: a block for each tile
    double microseconds = 0;  // as predicted
};

// The cheapest of all tiles and ways on a device with so many multiprocessors, by the table of
// costs in tune/; among those that seem equally cheap, the largest tile. `aligned`: rows of A, B
// and C begin at multiples of 16 bytes, and N and K are multiples of 4. Throws
// std::invalid_argument when `multiprocessors` is 0.
Choice choose(const Shape& shape, bool aligned, unsigned multiprocessors);

}  // namespace gemm
