// Copies and streams: n floats go to the device, a kernel works on them, n floats come back.
// PMPP 4th edition, chapter 22
//
//   version           what is new                                   what limits it
//   pageable          cudaMemcpy from ordinary memory               the driver copies everything, too
//   pinned            the same calls, memory that cannot move       the host waits in each call
//   pinned_async      everything queued, one wait                   copy, kernel, copy: one after the other
//   chunked_streams   pieces in three streams overlap               the longest of copy in, kernel, copy out
//   graph             the same pieces, launched by one call         the longest of copy in, kernel, copy out
//
// 4 n bytes cross the bus in each direction. Perfect overlap takes as long as the longer one of
// copying, in both directions at once, and computing. beyond/ has memory pools, and versions that
// copy nothing.
//
//   ./course run day09                                  every version, verified and timed, beside its limits
//   ./course run day09 --program                        program.cu: one job, from main() to the result
//   ./course run day09 --only graph --size 65536
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "job.hpp"

namespace day09 {

constexpr int kBlockSize = 256;

// The work: `steps` multiply-adds for each element. It represents any kernel; `steps` decides
// whether computing or copying takes longer.
__global__ void iterate(const float* in, float* out, std::size_t n, int steps) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
#pragma unroll 16
    for (int step = 0; step < steps; ++step)
        x = fmaf(kFactor, x, kAddend);
    out[i] = x;
}

void launch_iterate(const float* in, float* out, std::size_t n, int steps, cudaStream_t stream) {
    iterate<<<course::blocks_for(n, kBlockSize), kBlockSize, 0, stream>>>(in, out, n, steps);
    CUDA_CHECK_LAUNCH();  // was the launch accepted?
}

// --- Three calls ---------------------------------------------------------------------------------

constexpr int kStreams = 3;  // one copies in, one computes, one copies out

// What the versions use on the device. Created once, for many jobs, because creating it takes
// longer than using it.
struct Device {
    float* in = nullptr;              // n floats
    float* out = nullptr;             // n floats
    cudaStream_t streams[kStreams];   // streams[0] is the one where a job starts and ends
    cudaEvent_t start;                // the job has started
    cudaEvent_t done[kStreams];       // the pieces in streams[s] are complete
    cudaGraphExec_t graph = nullptr;  // of the version `graph`
    cudaMemPool_t pool = nullptr;     // beyond/: whose threshold `stream_ordered` has raised, from what
    std::uint64_t pool_threshold = 0;
};

// Idea: copy in, compute, copy out, in the default stream.
// Cost removed: none yet. This is the book's chapter 2.
// Still limits it: the pages of `in` may move, so the device cannot read them directly. The driver
// copies them, piece by piece, into a buffer of its own, from which the device copies them.
void pageable(const Job& job, const Device& device) {
    const std::size_t bytes = job.n * sizeof(float);
    CUDA_CHECK(cudaMemcpy(device.in, job.in, bytes, cudaMemcpyHostToDevice));
    launch_iterate(device.in, device.out, job.n, job.steps, nullptr);
    // This copy waits for the kernel: both are in the default stream.
    CUDA_CHECK(cudaMemcpy(job.out, device.out, bytes, cudaMemcpyDeviceToHost));
}

// Idea: the same three calls, with other host memory.
// Cost removed: the copy on the host. Pinned pages have a fixed physical address, which the device
// reads directly.
// Still limits it: cudaMemcpy returns when the copy is complete, so the host waits twice.
float* allocate_pinned(std::size_t n) {
    float* data = nullptr;
    CUDA_CHECK(cudaMallocHost(&data, n * sizeof(float)));
    return data;
}

// --- One stream ----------------------------------------------------------------------------------

// Queues copy, kernel, copy for `n` elements. Work in one stream runs in the order in which it was
// queued.
void queue_piece(const float* in, float* device_in, float* device_out, float* out, std::size_t n, int steps,
                 cudaStream_t stream) {
    const std::size_t bytes = n * sizeof(float);
    CUDA_CHECK(cudaMemcpyAsync(device_in, in, bytes, cudaMemcpyHostToDevice, stream));
    launch_iterate(device_in, device_out, n, steps, stream);
    CUDA_CHECK(cudaMemcpyAsync(out, device_out, bytes, cudaMemcpyDeviceToHost, stream));
}

// Idea: queue everything, then wait once.
// Cost removed: the device does not wait for the host between the three operations.
// Still limits it: a stream is a queue. While one engine works, the other two are idle.
void pinned_async(const Job& job, const Device& device) {
    queue_piece(job.in, device.in, device.out, job.out, job.n, job.steps, device.streams[0]);
    // Without this wait the caller reads `out` before the copy has written it.
    CUDA_CHECK(cudaStreamSynchronize(device.streams[0]));
}

// --- Several streams -----------------------------------------------------------------------------

// The other streams wait for what is in streams[0] so far. The host does not wait.
void fork_streams(const Device& device) {
    CUDA_CHECK(cudaEventRecord(device.start, device.streams[0]));
    for (int s = 1; s < kStreams; ++s)
        CUDA_CHECK(cudaStreamWaitEvent(device.streams[s], device.start, 0));
}

// streams[0] waits for what is in the other streams so far.
void join_streams(const Device& device) {
    for (int s = 1; s < kStreams; ++s) {
        CUDA_CHECK(cudaEventRecord(device.done[s], device.streams[s]));
        CUDA_CHECK(cudaStreamWaitEvent(device.streams[0], device.done[s], 0));
    }
}

// Cuts the data into chunks and distributes them over the streams in turn.
void queue_chunks(const Job& job, const Device& device) {
    const std::size_t chunk = course::ceil_div(job.n, static_cast<std::size_t>(job.chunks));
    fork_streams(device);
    int s = 0;
    for (std::size_t begin = 0; begin < job.n; begin += chunk) {
        const std::size_t count = std::min(chunk, job.n - begin);  // the last one may be shorter
        queue_piece(job.in + begin, device.in + begin, device.out + begin, job.out + begin, count, job.steps,
                    device.streams[s]);
        s = (s + 1) % kStreams;
    }
    join_streams(device);
}

// Idea: while one chunk is computed, the next one is copied in and the one before it is copied out.
// A GPU has a copy engine for each direction, and both work at the same time as the SMs.
// Cost removed: the shorter two of copy in, kernel, copy out.
// Still limits it: the longest of them. The copy of the first chunk to the device and that of the
// last one back overlap with little: (c + 2) / c for c chunks. And each chunk has three calls,
// which take a few microseconds.
void chunked_streams(const Job& job, const Device& device) {
    queue_chunks(job, device);
    // Enough for all streams, because streams[0] has joined the others.
    CUDA_CHECK(cudaStreamSynchronize(device.streams[0]));
}

// A capture runs nothing. It records what is queued, and the events become the edges of a graph.
// ThreadLocal: while it lasts, calls that could disturb it are errors in this thread of the host
// only.
void capture_chunks(const Job& job, Device& device) {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(device.streams[0], cudaStreamCaptureModeThreadLocal));
    queue_chunks(job, device);
    CUDA_CHECK(cudaStreamEndCapture(device.streams[0], &graph));
    const cudaError_t error = cudaGraphInstantiate(&device.graph, graph, 0);
    CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(error);
}

// Idea: check and prepare all copies and launches once, then start them by a single call.
// Cost removed: with 8 chunks about thirty calls per job, in which the host checks arguments and
// writes commands. They take time only where the device would wait for them, in small, launch-bound
// jobs.
// Still limits it: addresses and sizes are those of the capture; another job needs another graph,
// or an update of this one.
void graph(const Job&, const Device& device) {
    CUDA_CHECK(cudaGraphLaunch(device.graph, device.streams[0]));
    CUDA_CHECK(cudaStreamSynchronize(device.streams[0]));
}

}  // namespace day09
