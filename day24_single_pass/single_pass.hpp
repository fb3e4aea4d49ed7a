// The host API of day 24: inclusive prefix sums and a filter, each in one launch. The kernels are
// in single_pass.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day24 {

// Device memory through which blocks exchange values, for at most `capacity` elements: 12 bytes for
// each 2,048 of them. The caller allocates it once and passes it to every call. Two calls that may
// run at the same time, on two streams, need two workspaces.
class Workspace {
  public:
    explicit Workspace(std::size_t capacity);  // on the current device; throws CudaError
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t capacity() const { return capacity_; }
    unsigned long long* board() { return board_.data(); }  // the ticket, then a word for each tile
    std::size_t board_size() const { return board_.size(); }
    std::int32_t* sums() { return sums_.data(); }  // one for each tile

  private:
    std::size_t capacity_;
    course::DeviceBuffer<unsigned long long> board_;
    course::DeviceBuffer<std::int32_t> sums_;
};

// Enqueues out[i] = in[0] + ... + in[i] on `stream`. Every sum of adjacent elements has to fit into
// 32 bits. Any length, 0 included; `out` is as long as `in`, and either `in` itself or memory that
// does not overlap it.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using Launcher = void (*)(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<std::int32_t> out,
                          Workspace& workspace, cudaStream_t stream);

// The versions, in the order of the lesson. The problem is the number of elements.
using Version = course::Version<Launcher, std::size_t>;
std::span<const Version> versions();

// Enqueues the filter: out[0] to out[count[0] - 1] become the elements of `in` below the threshold,
// in their order. Elements of `out` after them are not written. `out` has room for all elements of
// `in`, at most 2^31 - 1, and does not overlap it; `count` has one element.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
void filter_below(course::DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                  course::DeviceSpan<std::int32_t> out, course::DeviceSpan<std::uint32_t> count,
                  Workspace& workspace, cudaStream_t stream);

// For tests: domino, look_back or look_back_warp in a workspace that is taken as it is. Tickets
// drawn, words published and prefixes stored before count.
void resume(std::string_view version, course::DeviceSpan<const std::int32_t> in,
            course::DeviceSpan<std::int32_t> out, Workspace& workspace, cudaStream_t stream);

// The references: one loop; and a part of the array for each core.
void scan_on_cpu(std::span<const std::int32_t> in, std::span<std::int32_t> out);
void scan_on_all_cores(std::span<const std::int32_t> in, std::span<std::int32_t> out);
// Returns the number of elements kept.
std::size_t filter_on_cpu(std::span<const std::int32_t> in, std::int32_t threshold,
                          std::span<std::int32_t> out);

}  // namespace day24
