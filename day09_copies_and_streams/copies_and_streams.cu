// The list of versions, what they need, and the owners of these resources. The versions themselves
// are in copies_and_streams.cuh, beyond/pools.cuh and beyond/no_copies.cuh.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "beyond/no_copies.cuh"
#include "beyond/pools.cuh"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "copies_and_streams.cuh"
#include "copies_and_streams.hpp"

namespace day09 {
namespace {

using course::require;

// --- Checks --------------------------------------------------------------------------------------

const char* name(cudaMemoryType type) {
    switch (type) {
        case cudaMemoryTypeHost:
            return "pinned memory (cudaMallocHost)";
        case cudaMemoryTypeDevice:
            return "device memory (cudaMalloc)";
        case cudaMemoryTypeManaged:
            return "managed memory (cudaMallocManaged)";
        default:
            return "pageable memory (malloc)";
    }
}

cudaMemoryType type_of(HostMemory memory) {
    switch (memory) {
        case HostMemory::kPinned:
            return cudaMemoryTypeHost;
        case HostMemory::kManaged:
            return cudaMemoryTypeManaged;
        default:
            return cudaMemoryTypeUnregistered;
    }
}

void check_memory(const Version& version, const char* argument, const float* data, std::size_t n) {
    require(data != nullptr, version.name, ": ", argument, " is null; expected ", n,
            " floats of host memory");
    const cudaMemoryType expected = type_of(version.launcher.memory);
    for (const float* end : {data, data + n - 1}) {
        cudaPointerAttributes attributes{};
        CUDA_CHECK(cudaPointerGetAttributes(&attributes, end));
        require(attributes.type == expected, version.name, ": ", argument, " is ", name(attributes.type),
                "; expected ", name(expected));
    }
}

void check_job(const Version& version, const Job& job) {
    require(job.steps >= 0, version.name, ": steps is ", job.steps, "; expected 0 or more");
    require(job.chunks >= 1, version.name, ": chunks is ", job.chunks, "; expected 1 or more");
    if (job.n == 0) return;
    require(job.n <= std::numeric_limits<std::size_t>::max() / (2 * sizeof(float)), version.name, ": n is ",
            job.n, "; expected a number of floats that memory can hold");
    const std::string reason = version.cannot_run({job.n, job.steps});
    require(reason.empty(), version.name, ": ", reason);
    check_memory(version, "in", job.in, job.n);
    check_memory(version, "out", job.out, job.n);
    const auto in = reinterpret_cast<std::uintptr_t>(job.in);
    const auto out = reinterpret_cast<std::uintptr_t>(job.out);
    const std::size_t bytes = job.n * sizeof(float);
    require(in + bytes <= out || out + bytes <= in, version.name,
            ": out overlaps in; expected no element in common");
}

int attribute(cudaDeviceAttr which) {
    int device = 0;
    int value = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

// Oversubscribed managed memory is evicted page by page, which takes minutes. So stay far from the
// limit.
std::string no_managed_memory(const Problem& problem) {
    if (attribute(cudaDevAttrConcurrentManagedAccess) == 0)
        return "this device or operating system cannot prefetch managed memory";
    std::size_t free = 0;
    std::size_t total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const std::size_t bytes = 2 * problem.n * sizeof(float);
    if (bytes <= free / 4) return "";
    return "in and out are " + std::to_string(bytes) + " bytes; expected at most a quarter of the " +
           std::to_string(free) + " bytes that are free";
}

std::string no_memory_pools(const Problem&) {
    return attribute(cudaDevAttrMemoryPoolsSupported) != 0 ? "" : "this device has no memory pools";
}

std::string no_mapped_memory(const Problem&) {
    return attribute(cudaDevAttrCanMapHostMemory) != 0 ? "" : "this device cannot map host memory";
}

// --- Owners --------------------------------------------------------------------------------------

class Stream {
  public:
    // Non-blocking: the default stream and this one do not wait for each other.
    Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event {
  public:
    // Without a time stamp an event is cheaper.
    Event() { CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
    ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

// At least one float, so that data() is never null.
float* allocate_host(HostMemory memory, std::size_t size) {
    const std::size_t n = std::max<std::size_t>(size, 1);
    if (memory == HostMemory::kPinned) return allocate_pinned(n);
    if (memory == HostMemory::kManaged) return allocate_managed(n);
    auto* const data = static_cast<float*>(std::malloc(n * sizeof(float)));
    if (data == nullptr) throw std::bad_alloc();
    return data;
}

course::Work work(const Problem& problem) {
    const auto n = static_cast<double>(problem.n);
    return {.bytes = 2 * sizeof(float) * n, .written = sizeof(float) * n, .flops = 2.0 * problem.steps * n};
}

}  // namespace

struct Runner::State {
    State(const Version& version_, const Job& job_)
        : version(version_), job(job_), device_in(job.n), device_out(job.n) {
        device.in = device_in.data();
        device.out = device_out.data();
        device.start = start.get();
        for (int s = 0; s < kStreams; ++s) {
            device.streams[s] = streams[static_cast<std::size_t>(s)].get();
            device.done[s] = done[static_cast<std::size_t>(s)].get();
        }
        if (version.launcher.prepare != nullptr && job.n > 0) version.launcher.prepare(job, device);
    }
    ~State() {
        if (device.graph != nullptr) static_cast<void>(cudaGraphExecDestroy(device.graph));
        if (device.pool == nullptr) return;
        // With the old threshold, the next wait gives the pool's memory back.
        static_cast<void>(
            cudaMemPoolSetAttribute(device.pool, cudaMemPoolAttrReleaseThreshold, &device.pool_threshold));
        static_cast<void>(cudaStreamSynchronize(device.streams[0]));
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const Version& version;
    Job job;
    course::DeviceBuffer<float> device_in;
    course::DeviceBuffer<float> device_out;
    std::array<Stream, kStreams> streams;
    std::array<Event, kStreams> done;
    Event start;
    Device device{};
};

Runner::Runner(const Version& version, const Job& job) {
    check_job(version, job);
    state_ = std::make_unique<State>(version, job);
}

Runner::~Runner() = default;

void Runner::run() {
    if (state_->job.n == 0) return;  // a grid must have a block
    state_->version.launcher.run(state_->job, state_->device);
}

std::span<const cudaStream_t> Runner::streams() const {
    return state_->device.streams;
}

const Device& Runner::device() const {
    return state_->device;
}

course::DeviceSpan<const float> Runner::device_in() const {
    return std::as_const(state_->device_in).span();
}

course::DeviceSpan<const float> Runner::device_out() const {
    return std::as_const(state_->device_out).span();
}

HostBuffer::HostBuffer(HostMemory memory, std::size_t n)
    : memory_(memory), size_(n), data_(allocate_host(memory, n)) {}

HostBuffer::~HostBuffer() {
    switch (memory_) {
        case HostMemory::kPageable:
            std::free(data_);
            break;
        case HostMemory::kPinned:
            static_cast<void>(cudaFreeHost(data_));
            break;
        case HostMemory::kManaged:
            static_cast<void>(cudaFree(data_));
            break;
    }
}

// --- The list ------------------------------------------------------------------------------------

std::span<const Version> versions() {
    using enum HostMemory;
    static const std::array<Version, 9> list = {{
        {"pageable", "cudaMemcpy from ordinary memory", {kPageable, pageable}, work},
        {"pinned", "the same calls, pinned memory", {kPinned, pageable}, work},
        {"pinned_async", "one stream, one wait", {kPinned, pinned_async}, work},
        {"malloc_each_time", "device memory for each job", {kPinned, malloc_each_time}, work},
        {"stream_ordered",
         "the stream allocates and frees",
         {kPinned, stream_ordered, keep_pool},
         work,
         no_memory_pools},
        {"chunked_streams", "chunks in three streams overlap", {kPinned, chunked_streams}, work},
        {"graph", "the chunks as a CUDA graph", {kPinned, graph, capture_chunks}, work},
        {"zero_copy",
         "the kernel reads and writes host memory",
         {kPinned, zero_copy},
         work,
         no_mapped_memory},
        {"managed", "the driver moves pages, asked beforehand", {kManaged, managed}, work, no_managed_memory},
    }};
    return list;
}

}  // namespace day09
