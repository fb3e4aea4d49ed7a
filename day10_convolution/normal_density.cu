// Day 10: the normal density in two dimensions, a kernel of the simplest kind: a thread per place, no place needs another.
#include <cmath>
#include <numbers>

#include "common/check.hpp"
#include "common/grid.hpp"
#include "normal_density.hpp"

namespace day10 {
namespace {

constexpr int kBlockSize = 256;

// What does not depend on the place is computed once, on the host.
struct Coefficients {
    float top;     // the density at the mean
    float square;  // of u^2 and of v^2 in the exponent
    float mixed;   // of u v
};

// Idea: a thread per place; its distance from the mean in double, because there two near numbers are subtracted, the rest in float.
// Cost removed: the loop.
// Still limits it: two double operations and an exponential for 4 bytes written.
__global__ void density(course::DeviceMatrix<float> out, Normal2d normal, Grid2d grid, Coefficients c) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    const double x = grid.first_x + static_cast<double>(col) * grid.step_x;
    const double y = grid.first_y + static_cast<double>(row) * grid.step_y;
    const auto u = static_cast<float>((x - normal.mean_x) / normal.sigma_x);
    const auto v = static_cast<float>((y - normal.mean_y) / normal.sigma_y);
    out(row, col) = c.top * expf(c.square * (u * u + v * v) + c.mixed * u * v);
}

}  // namespace

void normal_density(course::DeviceMatrix<float> out, const Normal2d& normal, const Grid2d& grid,
                    cudaStream_t stream) {
    check_normal(normal);
    const std::size_t places = out.rows() * out.cols();
    if (places == 0) return;
    const double free_share = 1 - normal.correlation * normal.correlation;
    const Coefficients coefficients = {
        .top = static_cast<float>(
            1 / (2 * std::numbers::pi * normal.sigma_x * normal.sigma_y * std::sqrt(free_share))),
        .square = static_cast<float>(-1 / (2 * free_share)),
        .mixed = static_cast<float>(normal.correlation / free_share)};
    density<<<course::blocks_for(places, kBlockSize), kBlockSize, 0, stream>>>(out, normal, grid,
                                                                               coefficients);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day10
