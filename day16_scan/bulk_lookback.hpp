// The launcher of bulk_lookback, which is compiled for compute capability 9.0a.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day16 {

class Workspace;

// Enqueues the scan of `n` elements, at least one. `in` and `out` are 16-byte aligned.
template <class T, bool kExclusive>
void launch_bulk_lookback(const T* in, T* out, std::size_t n, Workspace& workspace, cudaStream_t stream);

}  // namespace day16
