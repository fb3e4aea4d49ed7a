// Radix sort of keys of 32 and 64 bits, by onesweep: integers and floating-point numbers, with and
// without values, in either direction, in segments. The kernels are in onesweep.cuh.
//
// Floating-point numbers are in total order: -infinity, ..., -0, +0, ..., infinity, then NaN, of
// either sign. Descending is the reverse order, NaN first. Sorts are stable in either direction.
//
// A block needs up to 64 KB of shared memory, which GPUs from compute capability 7.5 on provide. To
// sort pairs it needs 91 KB: on 7.5 sort_pairs() throws CudaError.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "beyond/key_code.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day19 {

// Device memory for intermediate results: room for `capacity` keys of `key_bytes` (4 or 8) and as
// many values, plus a twentieth of the keys. The caller allocates it once and passes it to every
// call. Two sorts that may run at the same time, on two streams, need two workspaces.
class RadixWorkspace {
  public:
    // On the current device. Throws std::invalid_argument for other key sizes or more than
    // kMostKeys, CudaError when there is no memory. `shared_bytes`: the most that a block may have;
    // less than the GPU offers only for a test.
    RadixWorkspace(std::size_t capacity, std::size_t key_bytes, bool with_values = false,
                   std::size_t shared_bytes = shared_bytes_of_a_block());
    RadixWorkspace(const RadixWorkspace&) = delete;
    RadixWorkspace& operator=(const RadixWorkspace&) = delete;

    static constexpr std::size_t kMostKeys = std::size_t{1} << 38;
    // The most shared memory that the current GPU gives to a block.
    static std::size_t shared_bytes_of_a_block();

    std::size_t capacity() const { return capacity_; }
    std::size_t key_bytes() const { return key_bytes_; }
    std::size_t shared_bytes() const { return shared_bytes_; }
    bool has_values() const { return values_.size() != 0; }
    void* keys() { return keys_.data(); }
    std::uint32_t* values() { return values_.data(); }
    unsigned long long* totals() { return totals_.data(); }                // of 8 digits, and 8 tickets
    unsigned long long* words() { return words_.data(); }                  // 256 for each tile
    unsigned long long* segment_words() { return segment_words_.data(); }  // sums, and lists of segments

  private:
    std::size_t capacity_;
    std::size_t key_bytes_;
    std::size_t shared_bytes_;
    course::DeviceBuffer<unsigned long long> keys_;
    course::DeviceBuffer<std::uint32_t> values_;
    course::DeviceBuffer<unsigned long long> totals_;
    course::DeviceBuffer<unsigned long long> words_;
    course::DeviceBuffer<unsigned long long> segment_words_;
};

// Enqueues the sort of `in` to `out` on `stream`: as many keys, and no overlap. Key is
// std::int32_t, std::uint32_t, float, std::int64_t, std::uint64_t or double. Any length, 0
// included, and any alignment that Key allows. Throws std::invalid_argument for a bad argument,
// CudaError when a launch fails.
template <class Key>
void sort_keys(course::DeviceSpan<const Key> in, course::DeviceSpan<Key> out, Direction direction,
               RadixWorkspace& workspace, cudaStream_t stream);

// The same, and each key's value moves with it: pairs of equal keys stay in their order. The
// workspace must have room for values.
template <class Key>
void sort_pairs(course::DeviceSpan<const Key> in, course::DeviceSpan<const std::uint32_t> values_in,
                course::DeviceSpan<Key> out, course::DeviceSpan<std::uint32_t> values_out,
                Direction direction, RadixWorkspace& workspace, cudaStream_t stream);

// Sorts each segment by itself: segment s has the keys offsets[s] to offsets[s + 1] - 1. Offsets
// ascend from 0 to the number of keys, which is not checked; segments may be empty. `offsets` and
// `out` do not overlap. A warp sorts many segments of up to 32 keys together, or one of up to 256;
// a block sorts one of up to 10,240 keys in shared memory; longer ones are sorted together, as
// pairs of segment and key. So the workspace is for keys of 8 bytes, and for twice as many. Key has
// 32 bits.
template <class Key>
void sort_segments(course::DeviceSpan<const Key> in, course::DeviceSpan<const std::uint64_t> offsets,
                   course::DeviceSpan<Key> out, Direction direction, RadixWorkspace& workspace,
                   cudaStream_t stream);

}  // namespace day19
