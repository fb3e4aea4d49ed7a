// Bug hunt "running_sums": the running sums of every row.
//
//   out(r, c) = in(r, 0) + in(r, 1) + ... + in(r, c)
//
//   ./course run bug_hunts --only running_sums
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 128;

// Idea: a block for each row. It scans kBlock elements at a time in shared memory: in each step an
// element adds the one that is `stride` places before it. The sum goes on to the next elements.
// Cost removed: the loop over the row.
// Still limits it: each of the seven steps adds to nearly all elements.
__global__ void scan_rows(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    __shared__ float values[kBlock];
    const std::size_t row = blockIdx.x;
    float before = 0;  // the sum of the elements before these
    for (std::size_t first = 0; first < in.cols(); first += kBlock) {
        const std::size_t col = first + threadIdx.x;
        values[threadIdx.x] = col < in.cols() ? in(row, col) : 0.0f;
        for (unsigned stride = 1; stride < kBlock; stride *= 2) {
            __syncthreads();  // the step before is complete
            const float left = threadIdx.x >= stride ? values[threadIdx.x - stride] : 0.0f;
            __syncthreads();  // all have read
            values[threadIdx.x] += left;
        }
        __syncthreads();  // all sums are complete
        if (col < in.cols()) out(row, col) = before + values[threadIdx.x];
        before += values[kBlock - 1];
        __syncthreads();  // all have read the last one
    }
}

}  // namespace

void running_sums(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("running_sums", "out", out, {in.rows(), in.cols()});
    require_apart("running_sums", in, out);
    const unsigned blocks = course::blocks_for(in.rows(), 1);
    if (blocks == 0 || in.cols() == 0) return;
    scan_rows<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
