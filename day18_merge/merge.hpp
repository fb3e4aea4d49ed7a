// The host API of day 18: merges of two sorted arrays of 32-bit integers, which may have values.
// The kernels are in merge.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day18 {

using Key = std::int32_t;
using Value = std::int32_t;

// A sorted array: keys in ascending order and, if pairs are merged, a value for each.
struct Sorted {
    course::DeviceSpan<const Key> keys;
    course::DeviceSpan<const Value> values;
};

struct Output {
    course::DeviceSpan<Key> keys;
    course::DeviceSpan<Value> values;
};

// Device memory for intermediate results: of merges to at most `capacity` elements, about a 500th
// of their size. The caller allocates it once and passes it to every call. Two merges that may run
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
    std::size_t* splits() { return splits_.data(); }  // where each tile starts in a
    unsigned* ticket() { return ticket_.data(); }     // of bulk_merge: the next tile

  private:
    std::size_t capacity_;
    course::DeviceBuffer<std::size_t> splits_;
    course::DeviceBuffer<unsigned> ticket_;
};

// What a version merges.
enum class Operation {
    kKeys,  // all values are empty
    kPairs  // each key has a value, which moves with it
};

// Enqueues the merge of `a` and `b` to `out` on `stream`. It is stable: of equal keys those of `a`
// come first, and those of one array keep their order. Any lengths, 0 included, and any alignment
// of 4 bytes. `out` has as many elements as `a` and `b` together and overlaps neither. It is not
// checked that keys are sorted; if they are not, a version may even access memory outside the
// arrays. Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
using Launcher = void (*)(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                          cudaStream_t stream);

struct Method {
    Operation operation;
    Launcher launch;
};

// The versions, slow to fast. A problem is the length of the output.
using Version = course::Version<Method, std::size_t>;
std::span<const Version> versions();

// Merges any number of sorted arrays, by a tree of merges of two: in each round adjacent arrays are
// merged, so 2^r arrays take r rounds, each of which moves all elements. Stable: of equal keys
// those of an earlier array come first. `out` and `spare` have as many elements as all `runs`
// together, and overlap neither each other nor a run; the content of `spare` is unspecified
// afterwards. bulk_merge merges two arrays where it can, that is, where they start at 16-byte
// aligned addresses, so lengths are best multiples of 4. Otherwise overlapped merges them. Throws
// as the versions do.
void merge_many(Operation operation, std::span<const Sorted> runs, const Output& out, const Output& spare,
                Workspace& workspace, cudaStream_t stream);

// The searches by themselves: co-ranks of k = 0 to m + n, where m and n are the lengths of `a` and
// `b`. By threads, ranks[k] becomes the co-rank of k. By warps, there are 32 ranks for each k, one
// per lane. Throws std::invalid_argument unless `ranks` has as many elements.
void co_ranks_by_threads(course::DeviceSpan<const Key> a, course::DeviceSpan<const Key> b,
                         course::DeviceSpan<std::size_t> ranks, cudaStream_t stream);
void co_ranks_by_warps(course::DeviceSpan<const Key> a, course::DeviceSpan<const Key> b,
                       course::DeviceSpan<std::size_t> ranks, cudaStream_t stream);

// The reference: the sequential merge, by one CPU thread. `values` are empty, or as long as the
// keys. Throws std::invalid_argument where lengths do not fit.
struct SortedOnCpu {
    std::span<const Key> keys;
    std::span<const Value> values{};
};
struct OutputOnCpu {
    std::span<Key> keys;
    std::span<Value> values{};
};
void merge_on_cpu(const SortedOnCpu& a, const SortedOnCpu& b, const OutputOnCpu& out);

}  // namespace day18
