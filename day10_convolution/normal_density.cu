// Day 10, warm-up: the normal density in two dimensions. One thread per position, and no position
// depends on another.
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "normal_density.hpp"

namespace day10 {
namespace {

constexpr int kBlockSize = 256;

// What does not depend on the position, computed once, on the host.
struct Coefficients {
    float top;           // the density at the mean
    float inverse_free;  // 1 / (1 - rho^2)
};

// Idea: one thread per position. Differences of close numbers in double, the rest in float.
// Cost removed: the loop.
// Still limits it: a few double operations and an exponential for 4 bytes written.
__global__ void density(course::DeviceMatrix<float> out, Normal2d normal, Grid2d grid, Coefficients c) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    const double x = grid.first_x + static_cast<double>(col) * grid.step_x;
    const double y = grid.first_y + static_cast<double>(row) * grid.step_y;
    const double u = (x - normal.mean_x) / normal.sigma_x;
    const double v = (y - normal.mean_y) / normal.sigma_y;
    // u^2 - 2 rho u v + v^2 = (u - rho v)^2 + (1 - rho^2) v^2. Both terms are >= 0, so far away one
    // may overflow to infinity: the density is then 0.
    const auto along = static_cast<float>(u - normal.correlation * v);
    const auto across = static_cast<float>(v);
    out(row, col) = c.top * expf(-0.5f * (along * along * c.inverse_free + across * across));
}

}  // namespace

void normal_density(course::DeviceMatrix<float> out, const Normal2d& normal, const Grid2d& grid,
                    cudaStream_t stream) {
    check_normal(normal);
    const std::size_t places = out.rows() * out.cols();
    if (places == 0) return;
    const double free_share = 1 - normal.correlation * normal.correlation;
    const Coefficients coefficients = {.top = static_cast<float>(density_at_mean(normal)),
                                       .inverse_free = static_cast<float>(1 / free_share)};
    density<<<course::blocks_for(places, kBlockSize), kBlockSize, 0, stream>>>(out, normal, grid,
                                                                               coefficients);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day10
