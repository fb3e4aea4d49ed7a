// The host API of day 23: the record of an array, put together by the blocks of one launch. The
// kernels are in memory_model.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "record.hpp"

namespace day23 {

// Device memory through which blocks exchange records, for at most `capacity` elements. Two calls
// that may run at the same time need two workspaces.
class Workspace {
  public:
    explicit Workspace(std::size_t capacity);  // on the current device; throws CudaError
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t capacity() const { return capacity_; }
    unsigned* board() { return board_.data(); }
    Record* records() { return records_.data(); }  // one for each tile

  private:
    std::size_t capacity_;
    course::DeviceBuffer<unsigned> board_;
    course::DeviceBuffer<Record> records_;
};

// Enqueues total[0] = the record of `in` on `stream`; of no elements, all its words are 0. `total`
// has one element and does not overlap `in`.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using Launcher = void (*)(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<Record> total,
                          Workspace& workspace, cudaStream_t stream);

// The versions, in the order of the lesson. The problem is the number of elements.
using Version = course::Version<Launcher, std::size_t>;
std::span<const Version> versions();

// Enqueues the sequence lock: one block writes `states` states (at most 2^30), a reader for each
// element of `mixed` (at least 1) reads them. mixed[r] becomes 1 if reader r got
// words that do not belong together, else 0. `memory` has state_words() elements.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
void read_while_written(std::uint32_t states, course::DeviceSpan<std::uint32_t> mixed,
                        course::DeviceSpan<std::uint32_t> memory, cudaStream_t stream);
std::size_t state_words();

// The references: one loop; and a part of the array for each core.
Record record_on_cpu(std::span<const std::int32_t> in);
Record record_on_all_cores(std::span<const std::int32_t> in);

}  // namespace day23
