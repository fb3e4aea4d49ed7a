// Bug hunt "rods": heat flows in rods, two steps at a time.
//
//   A row is a rod. In a step, each cell becomes the mean of itself and the two beside it; the first
//   cell and the last one of a rod keep their values. out is in, two steps later.
//
//   ./course run bug_hunts --only rods
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 128;
constexpr int kSteps = 2;
constexpr int kHalo = kSteps;  // cells on either side that other blocks compute
constexpr int kInner = kBlock - 2 * kHalo;

// Idea: a block loads its part of a rod with a halo, does both steps in shared memory, and stores
// what is right.
// Cost removed: a trip through memory for each step.
// Still limits it: adjacent blocks both load and compute their halos.
__global__ void heat_rods(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    __shared__ float values[kBlock];
    const std::size_t row = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x);
    const auto cols = static_cast<std::ptrdiff_t>(in.cols());
    const std::ptrdiff_t col = static_cast<std::ptrdiff_t>(blockIdx.y) * kInner + thread - kHalo;
    const bool exists = col >= 0 && col < cols;
    float value = exists ? in(row, static_cast<std::size_t>(col)) : 0.0f;
    for (int step = 0; step < kSteps; ++step) {
        values[thread] = value;
        __syncthreads();  // the step before is complete
        const bool has_both = thread > 0 && thread < kBlock - 1;
        if (has_both && col > 0 && col < cols - 1)
            value = (values[thread - 1] + values[thread] + values[thread + 1]) / 3.0f;
        __syncthreads();  // all have read
    }
    if (exists && thread >= kHalo && thread < kBlock - kHalo) out(row, static_cast<std::size_t>(col)) = value;
}

}  // namespace

void rods(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("rods", "out", out, {in.rows(), in.cols()});
    require_apart("rods", in, out);
    const unsigned rows = course::blocks_for(in.rows(), 1);
    if (rows == 0 || in.cols() == 0) return;
    const unsigned parts = course::blocks_for(in.cols(), kInner);
    heat_rods<<<dim3(rows, parts), kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
