// The launchers of bulk_lookback and bulk_operator_scan, which are compiled for compute capability
// 9.0a.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace day16 {

class Workspace;

// Each enqueues the scan of `n` elements, at least one. All arrays are 16-byte aligned.
template <class T, bool kExclusive>
void launch_bulk_lookback(const T* in, T* out, std::size_t n, Workspace& workspace, cudaStream_t stream);
void launch_bulk_integers(const std::uint64_t* in, std::uint64_t* out, std::size_t n, Workspace& workspace,
                          cudaStream_t stream);
void launch_bulk_by_key(const std::int32_t* keys, const float* values, float* out, std::size_t n,
                        Workspace& workspace, cudaStream_t stream);

}  // namespace day16
