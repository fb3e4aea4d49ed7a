// Bug hunt "warp_sums": the sum of every 32 elements.
//
//   out[i] = in[32 i] + ... + in[32 i + 31], the last one of what is left
//
//   ./course run bug_hunts --only warp_sums
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

// Idea: the lanes of a warp add up their values through registers, in five steps.
// Cost removed: shared memory, and barriers of the block.
// Still limits it: memory.
__global__ void sum_of_each_warp(DeviceSpan<const float> in, DeviceSpan<float> out) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;

    float sum = i < in.size() ? in[i] : 0.0f;
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
        sum += __shfl_down_sync(kAllLanes, sum, distance);
    if (i < in.size() && i % kWarp == 0) out[i / kWarp] = sum;
}

}  // namespace

void warp_sums(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_size("warp_sums", "out", out, course::ceil_div<std::size_t>(in.size(), kWarp));
    require_apart("warp_sums", as_row(in), as_row(out));
    const unsigned blocks = course::blocks_for(in.size(), kBlock);
    if (blocks == 0) return;
    sum_of_each_warp<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
