// The host API of bulk_merge, which is compiled for compute capability 9.0a.
#pragma once

#include <cuda_runtime.h>

#include "merge.hpp"

namespace day18 {

// The first step of a bulk merge of many tiles: splits[t], which is on the device, becomes the
// co-rank of t * tile_size, and the last one, after all tiles, that of the end. At least one
// element.
void find_splits(course::DeviceSpan<const Key> a, course::DeviceSpan<const Key> b, std::size_t tile_size,
                 std::size_t* splits, Workspace& workspace, cudaStream_t stream);

// Enqueues the merge to at least one element. All arrays are 16-byte aligned.
template <bool kPairs>
void enqueue_bulk_merge(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                        cudaStream_t stream);

}  // namespace day18
