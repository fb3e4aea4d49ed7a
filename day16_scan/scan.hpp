// The host API of day 16: inclusive and exclusive prefix sums. The kernels are in scan.cuh and
// beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day16 {

// Device memory for intermediate results: of scans of at most `capacity` elements, about a 120th of
// their size. The caller allocates it once and passes it to every call. Two scans that may run at
// the same time, on two streams, need two workspaces.
class Workspace {
  public:
    explicit Workspace(std::size_t capacity);  // on the current device; throws CudaError
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t capacity() const { return capacity_; }
    float* sums() { return sums_.data(); }  // of sections, of sections of these, ...
    // Of struct Board in beyond/look_back.cuh.
    unsigned long long* ticket() { return board_.data(); }
    unsigned long long* words() { return board_.data() + 1; }
    std::size_t words_capacity() const { return board_.size() - 1; }
    // Of struct Published in beyond/operator_scan.cuh: array 0 or 1, with room for 16 bytes for
    // each tile.
    void* values(int array) { return values_.data() + array * words_capacity() * 2; }

  private:
    std::size_t capacity_;
    course::DeviceBuffer<float> sums_;
    course::DeviceBuffer<unsigned long long> board_;
    course::DeviceBuffer<unsigned long long> values_;
};

// Enqueues out[i] = in[0] + ... + in[i] on `stream`. Any length, 0 included, and any alignment of 4
// bytes; `out` is as long as `in`, and either `in` itself or memory that does not overlap it. The
// sums of floats are rounded in an order that differs between versions, and for decoupled_lookback
// from run to run.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
template <class T>
using Launcher = void (*)(course::DeviceSpan<const T> in, course::DeviceSpan<T> out, Workspace& workspace,
                          cudaStream_t stream);

// The versions, slow to fast: inclusive sums of floats. The problem is the number of elements.
using Version = course::Version<Launcher<float>, std::size_t>;
std::span<const Version> versions();

// The fastest version that the GPU and the alignment allow, for T = float, std::int32_t (sums wrap)
// or std::uint32_t. Arguments and errors are those of Launcher.
template <class T>
void inclusive_scan(course::DeviceSpan<const T> in, course::DeviceSpan<T> out, Workspace& workspace,
                    cudaStream_t stream);
// out[i] = in[0] + ... + in[i - 1]; out[0] = 0.
template <class T>
void exclusive_scan(course::DeviceSpan<const T> in, course::DeviceSpan<T> out, Workspace& workspace,
                    cudaStream_t stream);

// The reference, in double: `sums` gets the inclusive sums, `magnitudes` those of the absolute
// values, which bound the rounding errors. All have the length of `in`.
void scan_on_cpu(std::span<const float> in, std::span<double> sums, std::span<double> magnitudes);

}  // namespace day16
