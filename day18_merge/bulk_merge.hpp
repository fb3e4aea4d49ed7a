// The launcher of bulk_merge, which is compiled for compute capability 9.0a.
#pragma once

#include <cuda_runtime.h>

#include "merge.hpp"

namespace day18 {

// Enqueues the merge to at least one element. All arrays are 16-byte aligned.
template <bool kPairs>
void launch_bulk_merge(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                       cudaStream_t stream);

}  // namespace day18
