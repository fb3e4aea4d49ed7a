// Bug hunt "relay": the running sums of one long signal. This file compiles, gives the right
// result on a CPU, and is still wrong. Find the place.
//
//   out[i] = in[0] + in[1] + ... + in[i]
//
//   ./course check bug_hunts/relay     what goes wrong?
//   ./course hint bug_hunts/relay
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"

namespace hunts {
namespace {

constexpr int kBlock = 128;

struct Relay {
    unsigned drawn;  // tiles that blocks have drawn
    unsigned turn;   // the tile whose block may read the last result of the tile before
};

// Idea: one kernel. Blocks draw tiles of kBlock elements in order, so every tile before belongs to
// a block that runs. Each waits for its turn, takes the last result of the tile before, adds it to
// its own sums, and passes the turn on.
// Cost removed: a second kernel for the sums of the tiles.
// Still limits it: the chain. One block passes the turn on at a time.
__global__ void pass_on(DeviceSpan<const float> in, DeviceSpan<float> out, Relay* relay) {
    __shared__ float values[kBlock];
    __shared__ unsigned tile;
    __shared__ float before;
    if (threadIdx.x == 0) tile = atomicAdd(&relay->drawn, 1);
    __syncthreads();  // all know the tile
    const std::size_t i = static_cast<std::size_t>(tile) * kBlock + threadIdx.x;
    values[threadIdx.x] = i < in.size() ? in[i] : 0.0f;
    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();  // the step before is complete
        const float left = threadIdx.x >= stride ? values[threadIdx.x - stride] : 0.0f;
        __syncthreads();  // all have read
        values[threadIdx.x] += left;
    }

    if (threadIdx.x == 0) {
        while (course::load_relaxed(&relay->turn) != tile) {
        }
        __threadfence();  // the turn has been read before the result is
        before = tile > 0 ? out[i - 1] : 0.0f;
    }
    __syncthreads();  // all know the sum of the tiles before
    if (i < out.size()) out[i] = before + values[threadIdx.x];
    if (threadIdx.x == kBlock - 1) {
        course::store_relaxed(&relay->turn, tile + 1);
    }
}

}  // namespace

void relay(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_size("relay", "out", out, in.size());
    require_apart("relay", as_row(in), as_row(out));
    const unsigned blocks = course::blocks_for(in.size(), kBlock);
    if (blocks == 0) return;
    Relay* shared = nullptr;
    CUDA_CHECK(cudaMallocAsync(&shared, sizeof(Relay), stream));
    CUDA_CHECK(cudaMemsetAsync(shared, 0, sizeof(Relay), stream));
    pass_on<<<blocks, kBlock, 0, stream>>>(in, out, shared);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaFreeAsync(shared, stream));
}

}  // namespace hunts
