// The part of reduce_half_wgmma.cu that the host code of reduce_half.cu uses.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "common/tile/distance.cuh"
#include "reduce_in_matmul.cuh"
#include "reduce_in_matmul.hpp"

namespace day46 {

struct HalfWgmmaTile {
    static constexpr int BM = 128;
    static constexpr int BN = 256;
    static constexpr int WN = 256;  // a warp has 16 rows of the tile: one part of each row (parts_of_row)
};

// Why the version `half_wgmma` runs the kernel of `half_mma` for a problem, or "".
template <class T>
std::string why_no_half_wgmma(const ReducedMatmulOf<T>& matmul);

// Writes the parts of each row, one for each block of the row.
template <class R, class T>
void launch_reduce_half_wgmma(const course::OperandsOf<T>& operands, const RowPartition<HalfWgmmaTile>& tiles,
                              const course::Distance& distance, typename R::State* parts,
                              cudaStream_t stream);

}  // namespace day46
