// Host to device, a kernel, and back: the host API of day 9. The versions are in
// copies_and_streams.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "job.hpp"

namespace day09 {

// What the versions use on the device: streams, events, memory; copies_and_streams.cuh.
struct Device;

// How a version runs.
struct Launcher {
    HostMemory memory;                               // what in and out must be
    void (*run)(const Job&, const Device&);          // returns when `out` is complete
    void (*prepare)(const Job&, Device&) = nullptr;  // once, before the first run
};

struct Problem {
    std::size_t n = 0;
    int steps = 1;
};

// The versions, in the order in which the lesson has them.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();

// A version made ready for a job, which can be done many times: device memory, streams, events, and
// for `graph` the graph. in and out must stay where they are; what `in` holds may change between
// two runs.
class Runner {
  public:
    // Throws std::invalid_argument for null or overlapping pointers, memory of another kind than
    // the version's, numbers out of range, and what the version cannot run; CudaError when CUDA
    // fails.
    Runner(const Version& version, const Job& job);
    ~Runner();
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    // Does the job. `out` is complete when this returns.
    void run();

    // The streams that versions use, apart from `pageable`, `pinned` and `malloc_each_time`, which
    // use the default stream. Others start and end in the first one.
    std::span<const cudaStream_t> streams() const;

    // For a look inside: what the versions use, with two arrays of n floats each.
    // `malloc_each_time`, `stream_ordered`, `zero_copy` and `managed` do not use the arrays.
    const Device& device() const;
    course::DeviceSpan<const float> device_in() const;
    course::DeviceSpan<const float> device_out() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// n floats of host memory, uninitialised, with an owner.
class HostBuffer {
  public:
    HostBuffer(HostMemory memory, std::size_t n);
    ~HostBuffer();
    HostBuffer(const HostBuffer&) = delete;
    HostBuffer& operator=(const HostBuffer&) = delete;

    float* data() const { return data_; }
    std::span<float> span() const { return {data_, size_}; }

  private:
    HostMemory memory_;
    std::size_t size_;
    float* data_;
};

// Queues the kernel of all versions alone, on device memory.
void launch_iterate(const float* in, float* out, std::size_t n, int steps, cudaStream_t stream);

// The other streams wait for streams[0], and streams[0] for the others. The host does not wait.
void fork_streams(const Device& device);
void join_streams(const Device& device);

// Queues a job of at least one element in at most job.chunks chunks: two copies and a kernel for
// each.
void queue_chunks(const Job& job, const Device& device);

// The same computation on the CPU's cores. `in` and `out` have the same length and nothing in
// common.
void iterate_on_cpu(std::span<const float> in, std::span<float> out, int steps);

}  // namespace day09
