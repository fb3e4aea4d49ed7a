// The types and reductions of NCCL.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl.h"

namespace cuda_on_cpu::nccl {

std::size_t bytes_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
const char* name_of(ncclRedOp_t op);

// to[i] = from[0][i] op from[1][i] op ..., in this order. Types of 16 and 8 bits are summed in
// float and rounded once.
void reduce(void* to, const std::vector<const void*>& from, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op);

}  // namespace cuda_on_cpu::nccl
