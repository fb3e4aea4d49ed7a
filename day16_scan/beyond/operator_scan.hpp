// Scans with other operators than the sum of 32-bit elements. The kernel is in operator_scan.cuh.
//
// In all of them any length and alignment is allowed, `out` is as long as the inputs, and it is one
// of the inputs or overlaps none. Sums of floats are rounded in an order that may differ from run
// to run, except for those by key where bulk copies are possible (16-byte aligned, Hopper). They
// throw std::invalid_argument for a bad argument, CudaError when a launch fails.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "scan.hpp"

namespace day16 {

// out[i] = in[0] + ... + in[i], in 64 bits; sums wrap.
void inclusive_scan(course::DeviceSpan<const std::int64_t> in, course::DeviceSpan<std::int64_t> out,
                    Workspace& workspace, cudaStream_t stream);

// out[i] = the sum of the values of i's segment, up to i. A segment starts where `begins` is not 0.
void segmented_scan(course::DeviceSpan<const unsigned char> begins, course::DeviceSpan<const float> values,
                    course::DeviceSpan<float> out, Workspace& workspace, cudaStream_t stream);

// The same, where segments are consecutive elements with equal keys.
void scan_by_key(course::DeviceSpan<const std::int32_t> keys, course::DeviceSpan<const float> values,
                 course::DeviceSpan<float> out, Workspace& workspace, cudaStream_t stream);

// The recurrence x[i] = factors[i] * x[i - 1] + offsets[i], with x[-1] = 0. `out` gets x. Products
// of consecutive factors must be finite: an infinite one turns an x that is finite, or 0, into NaN.
void solve_recurrence(course::DeviceSpan<const float> factors, course::DeviceSpan<const float> offsets,
                      course::DeviceSpan<float> out, Workspace& workspace, cudaStream_t stream);

}  // namespace day16
