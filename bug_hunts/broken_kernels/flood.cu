// Bug hunt "flood": water that comes in from the left.
// This file compiles, looks right, and is wrong. Find the place.
//
//   out(r, c) = the step in which the water reaches a cell, 0 to 8; 9 if it does not
//
//   ./course check bug_hunts/flood     what goes wrong?
//   ./course hint bug_hunts/flood
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"

namespace hunts {
namespace {

constexpr int kBlock = 256;
constexpr int kSteps = 8;
constexpr float kDry = kSteps + 1;
constexpr float kDyke = -0.5f;  // cells below are dykes, which stay dry

// Relaxed: other threads write to their cells at the same time.
__device__ float step_of(DeviceMatrix<float> out, std::size_t row, std::size_t col) {
    if (row >= out.rows() || col >= out.cols()) return kDry;  // row -1 is a row too large
    return course::load_relaxed(&out(row, col));
}

__global__ void first_column(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    out(row, col) = col == 0 && in(row, col) > kDyke ? 0 : kDry;
}

// Idea: a thread for each cell. One that is dry looks for a neighbour from which the water comes.
// Cost removed: a queue of the cells at the water's edge.
// Still limits it: every step reads all cells.
__global__ void rise(DeviceMatrix<const float> in, DeviceMatrix<float> out, float step) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    if (!(in(row, col) > kDyke) || step_of(out, row, col) != kDry) return;

    const auto is_wet = [&](std::size_t r, std::size_t c) { return step_of(out, r, c) != kDry; };
    if (is_wet(row, col - 1) || is_wet(row, col + 1) || is_wet(row - 1, col) || is_wet(row + 1, col))
        course::store_relaxed(&out(row, col), step);
}

}  // namespace

void flood(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("flood", "out", out, {in.rows(), in.cols()});
    require_apart("flood", in, out);
    const unsigned blocks = course::blocks_for(out.rows() * out.cols(), kBlock);
    if (blocks == 0) return;
    first_column<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
    for (int step = 1; step <= kSteps; ++step) {
        rise<<<blocks, kBlock, 0, stream>>>(in, out, static_cast<float>(step));
        CUDA_CHECK_LAUNCH();
    }
}

}  // namespace hunts
