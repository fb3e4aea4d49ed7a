// The part of reduce_wgmma.cu that day 46's host code uses.
#pragma once

#include <string>

#include "common/tile/distance.cuh"
#include "reduce_in_matmul.cuh"
#include "reduce_in_matmul.hpp"

namespace day46 {

struct WgmmaTile {
    static constexpr int BM = 128;
    static constexpr int BN = 128;
};
inline constexpr unsigned kPartsOfBlock = 8;  // for each row

// Why the version `fused_wgmma` cannot run a problem along rows, or "".
std::string why_no_wgmma(const ReducedMatmul& matmul);

// Writes the parts of each row, kPartsOfBlock for each block of the row.
template <class R>
void launch_reduce_wgmma(const course::Operands& operands, const RowPartition<WgmmaTile>& tiles,
                         const course::Distance& distance, typename R::State* parts, cudaStream_t stream);
extern template void launch_reduce_wgmma<Extremum<false>>(const course::Operands&,
                                                          const RowPartition<WgmmaTile>&,
                                                          const course::Distance&, Extremum<false>::State*,
                                                          cudaStream_t);
extern template void launch_reduce_wgmma<Extremum<true>>(const course::Operands&,
                                                         const RowPartition<WgmmaTile>&,
                                                         const course::Distance&, Extremum<true>::State*,
                                                         cudaStream_t);

}  // namespace day46
