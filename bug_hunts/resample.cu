// Bug hunt "resample": a signal stretched or shrunk, without interpolation.
//
//   out[i] = in[floor(i * in.size() / out.size())]
//
//   ./course run bug_hunts --only resample
#include <limits>

#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

// Idea: a thread for each element of the result; it finds the place it came from.
// Cost removed: the loop of the CPU.
// Still limits it: memory; and a division for each element.
__global__ void take_nearest(const float* in, std::size_t in_size, float* out, std::size_t out_size) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i < out_size) out[i] = in[i * in_size / out_size];
}

}  // namespace

void resample(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    constexpr std::size_t kMost = std::numeric_limits<unsigned>::max();
    course::require(in.size() <= kMost && out.size() <= kMost, "resample: in has ", in.size(),
                    " elements, out has ", out.size(), "; expected less than 2^32");
    course::require(!in.empty() || out.empty(), "resample: in is empty; expected elements to take");
    require_apart("resample", as_row(in), as_row(out));
    const unsigned blocks = course::blocks_for(out.size(), kBlock);
    if (blocks == 0) return;
    take_nearest<<<blocks, kBlock, 0, stream>>>(in.data(), in.size(), out.data(), out.size());
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
