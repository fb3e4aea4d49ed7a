// The launchers of bulk_filter, which is compiled for compute capability 9.0a.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "filter.hpp"

namespace day17 {

// Enqueue a filter of `n` elements, at least one. `in` is 16-byte aligned.
void launch_bulk_filter(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                        Count* count, Workspace& workspace, cudaStream_t stream);
void launch_bulk_unique(const std::int32_t* in, std::size_t n, std::int32_t* out, Count* count,
                        Workspace& workspace, cudaStream_t stream);

}  // namespace day17
