// Of an all-reduce: its limits, the flags of kernels that wait for each other, the parts of an
// array.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"

namespace day51 {

inline constexpr int kMostRanks = 16;
inline constexpr int kBlock = 512;  // threads of a block

// The progress of the blocks of kernels that wait for each other, in the memory of one rank. All
// numbers count on from launch to launch, and wrap round at 2^32.
inline constexpr int kMostBlocks = 256;
struct Signals {
    unsigned arrived[kMostBlocks][kMostRanks];  // barriers that this block of that rank has come to
    unsigned passed[kMostBlocks];               // barriers of this rank's block in all ended launches
    unsigned sent[kMostBlocks];                 // calls in which this block has sent packets
};

// The part of an array that one of `ranks` ranks adds up, in `ring` and `two_shot`. All parts but
// the last ones have the same length. They start at multiples of four values: 16 bytes.
struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    __host__ __device__ std::size_t size() const { return end - begin; }
};
inline Part part_of(std::size_t count, int ranks, int number) {
    const std::size_t longest =
        course::ceil_div(course::ceil_div(count, static_cast<std::size_t>(ranks)), std::size_t{4}) * 4;
    const std::size_t begin = std::min(count, longest * static_cast<std::size_t>(number));
    return {begin, std::min(count, begin + longest)};
}

}  // namespace day51
