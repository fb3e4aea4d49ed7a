// The host API of day 17: filters of 32-bit integers. The kernels are in filter.cuh and
// beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day17 {

using Count = unsigned long long;  // of elements; 64 bits, as atomicAdd has them

// Device memory for intermediate results: of filters of at most `capacity` elements, about a 128th
// of their size. The caller allocates it once and passes it to every call. Two filters that may run
// at the same time, on two streams, need two workspaces.
class Workspace {
  public:
    // On the current device. Throws std::invalid_argument for more than kMostElements, CudaError
    // when there is no memory.
    explicit Workspace(std::size_t capacity);
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    static constexpr std::size_t kMostElements = std::size_t{1} << 38;  // a terabyte of them

    std::size_t capacity() const { return capacity_; }
    Count* counts() { return counts_.data(); }                   // one for each block
    unsigned long long* words() { return words_.data(); }        // of beyond/words.cuh, one for each tile
    unsigned long long* progress() { return progress_.data(); }  // struct Progress of beyond/words.cuh
  private:
    std::size_t capacity_;
    course::DeviceBuffer<Count> counts_;
    course::DeviceBuffer<unsigned long long> words_;
    course::DeviceBuffer<unsigned long long> progress_;
};

// What a version computes.
enum class Operation {
    kSelect,    // the elements below the threshold
    kUnique,    // the first of each run of equal elements; there is no threshold
    kPartition  // as kSelect; and the other elements at the end of out, the last of them first
};

// Enqueues the operation on `stream`. count[0] becomes the number of elements kept, which are
// out[0] to out[count - 1]. Elements after them are not written, unless the operation is
// kPartition. Any length, 0 included, and any alignment of 4 bytes; `out` has room for all elements
// of `in` and does not overlap it; `count` has one element.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using Launcher = void (*)(course::DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                          course::DeviceSpan<std::int32_t> out, course::DeviceSpan<Count> count,
                          Workspace& workspace, cudaStream_t stream);

struct Method {
    Operation operation;
    bool is_stable;  // the elements kept have the order they have in `in`; if not, any order
    Launcher launch;
};

struct Problem {
    std::size_t elements;
    std::size_t kept;
};

// The versions, slow to fast.
using Version = course::Version<Method, Problem>;
std::span<const Version> versions();

// The reference: writes what a stable version writes to `out`, as long as `in`, and returns the
// count.
std::size_t filter_on_cpu(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold,
                          std::span<std::int32_t> out);

}  // namespace day17
