// The host API of day 19: 32-bit unsigned keys in ascending order. The kernels are in
// sort.cuh and beyond/. beyond/radix_sort.hpp sorts other keys, and pairs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "beyond/radix_sort.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day19 {

using Key = std::uint32_t;

// Device memory for intermediate results: of sorts of at most `capacity` keys, about three times
// their size. The caller allocates it once and passes it to every call. Two sorts that may run at
// the same time, on two streams, need two workspaces.
class Workspace {
  public:
    // On the current device. Throws std::invalid_argument for more than kMostKeys, CudaError when
    // there is no memory.
    explicit Workspace(std::size_t capacity);
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    static constexpr std::size_t kMostKeys = std::size_t{1} << 37;  // half a terabyte of them

    std::size_t capacity() const { return capacity_; }
    Key* spare() { return spare_.data(); }         // as many keys as `capacity`: every other pass
    unsigned* counts() { return counts_.data(); }  // of keys with a digit, in each block
    std::size_t* sums() { return sums_.data(); }   // of 1,024 counts each; then of all before them
    RadixWorkspace& radix() { return radix_; }     // of radix_8bit and onesweep

  private:
    std::size_t capacity_;
    course::DeviceBuffer<Key> spare_;
    course::DeviceBuffer<unsigned> counts_;
    course::DeviceBuffer<std::size_t> sums_;
    RadixWorkspace radix_;
};

// Enqueues on `stream`: `out` gets the keys of `in` in ascending order. Any length that the
// version's constraint allows, 0 included, and any alignment of 4 bytes. `out` is as long as `in`,
// which is not changed, and they do not overlap. Throws std::invalid_argument for a bad argument,
// CudaError when a launch fails.
using Launcher = void (*)(course::DeviceSpan<const Key> in, course::DeviceSpan<Key> out, Workspace& workspace,
                          cudaStream_t stream);

// The versions: comparison sorts, then radix sorts, each slow to fast. The problem is the number of
// keys.
using Version = course::Version<Launcher, std::size_t>;
std::span<const Version> versions();

// The scan that the radix sorts have in common: counts[i] becomes the sum of the counts before it
// that lie in the same part of 1,024; sums[p] that of all counts before part p, and the last of the
// sums that of all counts. `sums` has an element for each part, and one more. The sums within a
// part must be less than 2^32.
void scan_counts(course::DeviceSpan<unsigned> counts, course::DeviceSpan<std::size_t> sums,
                 cudaStream_t stream);

// The version with that scan and digits of eight bits, in beyond/radix_sort.cu. Arguments and
// errors are those of Launcher.
void radix_8bit(course::DeviceSpan<const Key> in, course::DeviceSpan<Key> out, Workspace& workspace,
                cudaStream_t stream);

// The reference: std::stable_sort, by the threads of the CPU. Throws std::invalid_argument where
// the lengths differ.
void sort_on_cpu(std::span<const Key> in, std::span<Key> out);

}  // namespace day19
