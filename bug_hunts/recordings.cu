// Bug hunt "recordings": two of them, in order of time.
//
//   sample i of row 0 was recorded at time i / 4, sample j of row 1 at time j / 3, rounded down
//   out = all samples in order of time; at the same time, those of row 0 come first
//
//   ./course run bug_hunts --only recordings
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

// When a sample was recorded: four in each unit of time by the first, three by the second.
__device__ std::size_t time_of_first(std::size_t i) {
    return i / 4;
}
__device__ std::size_t time_of_second(std::size_t j) {
    return j / 3;
}

// Idea: each thread writes one sample. How many of those before it come from the first recording,
// it finds by a binary search.
// Cost removed: the loop over all samples.
// Still limits it: memory, and the steps of the search.
__global__ void in_order_of_time(DeviceMatrix<const float> in, DeviceSpan<float> out) {
    const std::size_t n = in.cols();
    const std::size_t k = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (k >= out.size()) return;

    // Samples 0 to i - 1 of the first recording are among the first k of the output.
    std::size_t i = k > n ? k - n : 0;
    std::size_t end = k < n ? k : n;
    while (i < end) {
        const std::size_t middle = i + (end - i) / 2;
        if (time_of_first(middle) <= time_of_second(k - 1 - middle)) {
            i = middle + 1;
        } else {
            end = middle;
        }
    }
    const std::size_t j = k - i;
    const bool is_first = j == n || (i < n && time_of_first(i) <= time_of_second(j));
    out[k] = is_first ? in(0, i) : in(1, j);
}

}  // namespace

void recordings(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_shape("recordings", "in", in, {2, in.cols()});
    require_size("recordings", "out", out, 2 * in.cols());
    require_apart("recordings", in, as_row(out));
    const unsigned blocks = course::blocks_for(out.size(), kBlock);
    if (blocks == 0) return;
    in_order_of_time<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
