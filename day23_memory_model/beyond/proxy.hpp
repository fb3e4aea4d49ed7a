// The host API of day 23's bulk copy. The kernel is in proxy.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/device_view.hpp"

namespace day23 {

// Enqueues out[i] = 2 in[i] on `stream`, stored by bulk copies, which need compute capability 9.0.
// `in` and `out` have the same length, a multiple of 256, and begin at multiples of 16 bytes.
// is_fenced: each thread has a proxy fence between its write and the copy; without it the result
// may be wrong, which is the subject.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
void double_by_bulk_copy(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<std::int32_t> out,
                         bool is_fenced, cudaStream_t stream);

}  // namespace day23
