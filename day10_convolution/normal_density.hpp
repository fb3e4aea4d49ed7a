// The density of the normal distribution in two dimensions, on a grid. Its samples about the mean,
// divided by their sum, are the weights of the Gaussian blur.
//
//     p(x, y) = exp(-q / 2) / (2 pi sigma_x sigma_y sqrt(1 - rho^2))
//     q = (u^2 - 2 rho u v + v^2) / (1 - rho^2),   u = (x - mean_x) / sigma_x,   v = (y - mean_y) / sigma_y
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "common/device/device_view.hpp"

namespace day10 {

struct Normal2d {
    double mean_x = 0;
    double mean_y = 0;
    double sigma_x = 1;      // > 0
    double sigma_y = 1;      // > 0
    double correlation = 0;  // rho, -1 < rho < 1
};

// Column j is x = first_x + j * step_x, row i is y = first_y + i * step_y.
struct Grid2d {
    double first_x = 0;
    double first_y = 0;
    double step_x = 1;
    double step_y = 1;
};

// Queues the density at each place of `out` on `stream`; 0 rows or columns are legal. Throws
// std::invalid_argument for a distribution outside the limits above, CudaError when the launch
// fails.
void normal_density(course::DeviceMatrix<float> out, const Normal2d& normal, const Grid2d& grid,
                    cudaStream_t stream);

// The same on the CPU, in double, row by row. `magnitude` is the sensitivity to an error in the
// exponent:
// p * (1 + the sum of the exponent's |terms|).
struct ExpectedDensity {
    std::vector<double> value;
    std::vector<double> magnitude;
};
ExpectedDensity normal_density_on_cpu(std::size_t rows, std::size_t cols, const Normal2d& normal,
                                      const Grid2d& grid);

// 1 / (2 pi sigma_x sigma_y sqrt(1 - rho^2)), the largest one.
double density_at_mean(const Normal2d& normal);

// Throws std::invalid_argument unless the limits are kept, and float holds the density at the mean.
void check_normal(const Normal2d& normal);

}  // namespace day10
