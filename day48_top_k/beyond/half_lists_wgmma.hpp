// The part of half_lists_wgmma.cu that the host code of half_top_k.cu uses.
#pragma once

#include <cuda_runtime.h>

#include "common/device/operands.hpp"
#include "common/tile/distance.cuh"
#include "row_lists.cuh"

namespace day48 {

// As list_best(): lists the best of each row, and stores the pieces.
template <class E>
void launch_list_best_half_wgmma(const course::OperandsOf<E>& operands, const course::Distance& distance,
                                 float sign, const RowLists& lists, cudaStream_t stream);

}  // namespace day48
