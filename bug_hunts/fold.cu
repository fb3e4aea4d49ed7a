// Bug hunt "fold": a signal folded upon itself, as astronomers look for a pulsar whose period they
// know.
//
//   out[p] = in[p] + in[p + period] + in[p + 2 period] ..., the period being out.size()
//
//   ./course run bug_hunts --only fold
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

// Idea: a thread for each element of the signal, which it adds where the element belongs.
// Cost removed: the loop of the CPU.
// Still limits it: elements of one place wait for each other.
__global__ void add_each_element(DeviceSpan<const float> in, DeviceSpan<float> out) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i < in.size()) atomicAdd(&out[i % out.size()], in[i]);
}

}  // namespace

void fold(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    course::require(in.empty() || !out.empty(),
                    "fold: out is empty; expected a place for the elements of in");
    require_apart("fold", as_row(in), as_row(out));
    if (out.empty()) return;
    CUDA_CHECK(cudaMemsetAsync(out.data(), 0, out.size() * sizeof(float), stream));
    const unsigned blocks = course::blocks_for(in.size(), kBlock);
    if (blocks == 0) return;
    add_each_element<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
