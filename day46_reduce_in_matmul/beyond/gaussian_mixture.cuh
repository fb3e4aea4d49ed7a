// Day 46, beyond: one iteration of expectation-maximisation. The log of the density of all
// components is a matrix product (gaussian_mixture.hpp). The log of the mixture's density at a
// point is the log-sum-exp of a row. So the expectation is the fused reduction of
// reduce_in_matmul.cuh: the n x k matrix is never written. The maximisation computes its elements
// once more, where it uses them, as the backward pass of day 34 does.
//
//   kernel                  idea                                                     limited by
//   expand                  [x^2, x, 1] of each point, once for all iterations       not measured yet
//   make_coefficients       a warp for each component                                not measured yet
//   add_log_density         sums in double, a part for each warp                     not measured yet
//   add_responsibilities    a warp for a component and a part of the points          not measured yet
//   maximise                the sums of all parts; weights, means and variances      not measured yet
//
//   ./course run day46 --size 20000x100x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "gaussian_mixture.hpp"
#include "reduce_in_matmul.cuh"

namespace day46 {

// Idea: a thread for each element of a row, with the padding.
// Cost removed: squares and an unaligned row length in every iteration.
// Still limits it: not measured yet. It writes more than two numbers for each one that it reads.
__global__ void expand(course::DeviceMatrix<const float> points, course::DeviceMatrix<float> expanded) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = i / expanded.cols();
    const std::size_t col = i % expanded.cols();
    if (row >= expanded.rows()) return;
    const std::size_t d = points.cols();
    float value = col == 2 * d ? 1.0f : 0.0f;
    if (col < 2 * d) {
        const float x = points(row, col % d);
        value = col < d ? x * x : x;
    }
    expanded(row, col) = value;
}

inline void launch_expand_rows(course::DeviceMatrix<const float> points, course::DeviceMatrix<float> expanded,
                               cudaStream_t stream) {
    const unsigned grid = course::blocks_for(expanded.rows() * expanded.cols(), kThreads);
    expand<<<grid, kThreads, 0, stream>>>(points, expanded);
}

struct Parameters {
    const float* weights;    // k
    const float* means;      // k x d
    const float* variances;  // k x d
};

// Idea: a warp for each component. In double, because the constant is a difference of large
// numbers.
// Cost removed: logarithms and divisions for each point.
// Still limits it: not measured yet; it is k d elements of work.
__global__ void make_coefficients(Parameters of, std::size_t d, course::DeviceMatrix<float> coefficients) {
    const std::size_t j = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / course::kWarpSize;
    const std::size_t lane = threadIdx.x % course::kWarpSize;
    if (j >= coefficients.rows()) return;
    double constant = 0;
    for (std::size_t c = lane; c < d; c += course::kWarpSize) {
        const double mean = static_cast<double>(of.means[j * d + c]);
        const double variance = static_cast<double>(of.variances[j * d + c]);
        coefficients(j, c) = static_cast<float>(-0.5 / variance);
        coefficients(j, d + c) = static_cast<float>(mean / variance);
        constant -= 0.5 * (log(2 * std::numbers::pi * variance) + mean * mean / variance);
    }
    constant = course::warp_reduce(constant, [](double a, double b) { return a + b; });
    constant += log(static_cast<double>(of.weights[j]));  // -Inf for a component without points
    for (std::size_t c = 2 * d + lane; c < coefficients.cols(); c += course::kWarpSize)
        coefficients(j, c) = c == 2 * d ? static_cast<float>(constant) : 0.0f;
}

inline void launch_make_coefficients(Parameters of, std::size_t d, course::DeviceMatrix<float> coefficients,
                                     cudaStream_t stream) {
    const unsigned grid = course::blocks_for(coefficients.rows() * course::kWarpSize, kThreads);
    make_coefficients<<<grid, kThreads, 0, stream>>>(of, d, coefficients);
}

// Idea: as measure() of k-means: the number of parts depends on n alone.
// Cost removed: atomics, with which sums would differ from run to run.
// Still limits it: not measured yet.
__global__ void add_log_density(course::DeviceSpan<const float> log_density,
                                course::DeviceSpan<double> parts) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const std::size_t threads = parts.size() * course::kWarpSize;
    double sum = 0;
    for (std::size_t i = thread; i < log_density.size(); i += threads)
        sum += static_cast<double>(log_density[i]);
    sum = course::warp_reduce(sum, [](double a, double b) { return a + b; });
    const std::size_t warp = thread / course::kWarpSize;
    if (threadIdx.x % course::kWarpSize == 0 && warp < parts.size()) parts[warp] = sum;
}

inline void launch_add_log_density(course::DeviceSpan<const float> log_density,
                                   course::DeviceSpan<double> parts, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(parts.size() * course::kWarpSize, kThreads);
    add_log_density<<<grid, kThreads, 0, stream>>>(log_density, parts);
}

// --- Maximisation ------------------------------------------------------------------------------------

constexpr int kPiece = 512;             // points whose responsibilities a warp keeps in shared memory
constexpr std::size_t kMostParts = 64;  // of the points: warps of one component

__host__ __device__ inline std::size_t parts_of_points(std::size_t n) {
    const std::size_t pieces = course::ceil_div<std::size_t>(n, kPiece);
    return pieces < kMostParts ? pieces : kMostParts;
}

// The sums of a component over a part of the points: of r (x - mean) and of r (x - mean)^2, d each,
// and of r, the responsibility. x - mean in place of x: else the variance would be a difference of
// large numbers.
__host__ __device__ constexpr std::size_t sums_of_component(std::size_t d) {
    return 2 * d + 1;
}

// Idea: a warp takes pieces of 512 points. First each lane computes the responsibilities of its own
// points; then each lane has a coordinate and adds up all points of the piece, from coalesced
// loads. 32 products are added in float, their sums in double, in an order that depends on n alone.
// Cost removed: the n x k matrix of responsibilities. A piece in which all are 0 is skipped: if
// components lie far apart, that is most of them.
// Still limits it: not measured yet. In the first step lanes read rows of their own, and with few
// coordinates most lanes are idle in the second step.
__global__ void __launch_bounds__(kThreads)
    add_responsibilities(course::DeviceMatrix<const float> expanded, const float* means, std::size_t d,
                         course::DeviceMatrix<const float> coefficients,
                         course::DeviceSpan<const float> log_density, double* sums) {
    __shared__ float of_block[kThreads / course::kWarpSize][kPiece];
    const std::size_t n = expanded.rows();
    const std::size_t parts = parts_of_points(n);
    const std::size_t warp = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / course::kWarpSize;
    const std::size_t lane = threadIdx.x % course::kWarpSize;
    const std::size_t j = warp / parts;
    const std::size_t part = warp % parts;
    if (j >= coefficients.rows()) return;
    float* const responsibilities = of_block[threadIdx.x / course::kWarpSize];
    double* const mine = sums + warp * sums_of_component(d);
    for (std::size_t c = lane; c < 2 * d; c += course::kWarpSize)
        mine[c] = 0;
    double mass = 0;
    for (std::size_t first = part * kPiece; first < n; first += parts * kPiece) {
        bool some = false;
        for (std::size_t p = lane; p < kPiece; p += course::kWarpSize) {
            float r = 0;
            if (first + p < n) {
                float log_of_component = 0;
                for (std::size_t c = 0; c < sums_of_component(d); ++c)
                    log_of_component += expanded(first + p, c) * coefficients(j, c);
                // At most 0 but for rounding, which may be large where the densities are. NaN
                // stays.
                const float exponent = log_of_component - log_density[first + p];
                r = expf(exponent > 0 ? 0 : exponent);
            }
            responsibilities[p] = r;
            mass += static_cast<double>(r);
            some = some || r != 0;  // a NaN, too
        }
        if (!__any_sync(course::kWholeWarp, some)) continue;
        __syncwarp();
        const std::size_t points = n - first < kPiece ? n - first : kPiece;
        for (std::size_t c = lane; c < d; c += course::kWarpSize) {
            const float mean = means[j * d + c];
            double sum = 0;
            double squares = 0;
            for (std::size_t begin = 0; begin < points; begin += course::kWarpSize) {
                const std::size_t end =
                    begin + course::kWarpSize < points ? begin + course::kWarpSize : points;
                float few = 0;
                float few_squares = 0;
                for (std::size_t p = begin; p < end; ++p) {
                    const float difference = expanded(first + p, d + c) - mean;
                    const float weighted = responsibilities[p] * difference;
                    few += weighted;
                    few_squares += weighted * difference;
                }
                sum += static_cast<double>(few);
                squares += static_cast<double>(few_squares);
            }
            mine[c] += sum;
            mine[d + c] += squares;
        }
        __syncwarp();  // all lanes have read the responsibilities
    }
    mass = course::warp_reduce(mass, [](double a, double b) { return a + b; });
    if (lane == 0) mine[2 * d] = mass;
}

// `sums`: sums_of_component(d) for each component and part.
inline void launch_add_responsibilities(course::DeviceMatrix<const float> expanded, const float* means,
                                        std::size_t d, course::DeviceMatrix<const float> coefficients,
                                        course::DeviceSpan<const float> log_density, double* sums,
                                        cudaStream_t stream) {
    const std::size_t warps = coefficients.rows() * parts_of_points(expanded.rows());
    const unsigned grid = course::blocks_for(warps * course::kWarpSize, kThreads);
    add_responsibilities<<<grid, kThreads, 0, stream>>>(expanded, means, d, coefficients, log_density, sums);
}

// Idea: a thread for each coordinate of a component adds up the parts, in their order.
// Cost removed: none that matters; there are k d sums.
// Still limits it: not measured yet.
__global__ void maximise(const double* sums, std::size_t parts, MixtureShape shape, Parameters old,
                         float variance_floor, float* weights, float* means, float* variances) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= shape.k * shape.d) return;
    const std::size_t j = i / shape.d;
    const std::size_t c = i % shape.d;
    double mass = 0;
    double sum = 0;
    double squares = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        const double* const of_part = sums + (j * parts + part) * sums_of_component(shape.d);
        sum += of_part[c];
        squares += of_part[shape.d + c];
        mass += of_part[2 * shape.d];
    }
    if (c == 0) weights[j] = static_cast<float>(mass / static_cast<double>(shape.n));
    if (mass == 0) {
        means[i] = old.means[i];
        variances[i] = old.variances[i];
        return;
    }
    const double moved = sum / mass;
    means[i] = static_cast<float>(static_cast<double>(old.means[i]) + moved);
    variances[i] = fmaxf(static_cast<float>(squares / mass - moved * moved), variance_floor);
}

inline void launch_maximise(const double* sums, const MixtureShape& shape, Parameters old,
                            float variance_floor, float* weights, float* means, float* variances,
                            cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.k * shape.d, kThreads);
    maximise<<<grid, kThreads, 0, stream>>>(sums, parts_of_points(shape.n), shape, old, variance_floor,
                                            weights, means, variances);
}

}  // namespace day46
