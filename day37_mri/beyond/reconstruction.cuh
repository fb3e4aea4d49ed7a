// Day 37, beyond: what conjugate gradients need beside the transforms.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.hpp"

namespace day37 {

constexpr int kSumBlocks = 256;  // that share a dot product, at most
constexpr int kSumBlock = 256;

// The sum of `value` over the block's threads, in thread 0.
__device__ inline double sum_of_block(double value) {
    __shared__ double sums[kSumBlock];
    const int thread = static_cast<int>(threadIdx.x);
    sums[thread] = value;
    for (int half = kSumBlock / 2; half >= 1; half /= 2) {
        __syncthreads();
        if (thread < half) sums[thread] += sums[thread + half];
    }
    return sums[0];
}

// A dot product in two kernels: partial sums, and their sum. The real part is enough, because the
// matrix is Hermitian. Always in the same order, so that a reconstruction can be repeated.
__global__ void dot_in_parts(const float2* a, const float2* b, std::size_t count, double* partial) {
    double sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kSumBlock + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * kSumBlock)
        sum += static_cast<double>(a[i].x) * b[i].x + static_cast<double>(a[i].y) * b[i].y;
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void add_parts(const double* partial, int parts, double* result) {
    static_assert(kSumBlocks <= kSumBlock, "at most one partial sum per thread");
    const auto thread = static_cast<int>(threadIdx.x);
    const double sum = sum_of_block(thread < parts ? partial[thread] : 0);
    if (threadIdx.x == 0) *result = sum;
}

inline void launch_dot(const float2* a, const float2* b, std::size_t count, double* partial, double* result,
                       cudaStream_t stream) {
    const std::size_t blocks = (count + kSumBlock - 1) / kSumBlock;
    const int parts = blocks < kSumBlocks ? static_cast<int>(blocks) : kSumBlocks;
    dot_in_parts<<<parts, kSumBlock, 0, stream>>>(a, b, count, partial);
    add_parts<<<1, kSumBlock, 0, stream>>>(partial, parts, result);
}

// r = p = b, x = 0.
__global__ void begin_gradients(const float2* b, float2* x, float2* residual, float2* direction,
                                std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    x[i] = make_float2(0, 0);
    residual[i] = b[i];
    direction[i] = b[i];
}

// product += lambda p.
__global__ void add_scaled(float lambda, const float2* direction, float2* product, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    product[i].x += lambda * direction[i].x;
    product[i].y += lambda * direction[i].y;
}

// Idea: the step alpha = |r|^2 / (p A p) stays on the device, where each thread computes it from two
// sums. The host enqueues all iterations at once.
// Cost removed: a copy to the host and a wait, twice per iteration.
// Still limits it: memory, 74 % busy.
__global__ void step_along(const double* squares, const double* curvature, const float2* direction,
                           const float2* product, float2* x, float2* residual, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const auto alpha = static_cast<float>(*curvature > 0 ? *squares / *curvature : 0);
    x[i].x += alpha * direction[i].x;
    x[i].y += alpha * direction[i].y;
    residual[i].x -= alpha * product[i].x;
    residual[i].y -= alpha * product[i].y;
}

// p = r + beta p, beta = |r|^2 after the step / |r|^2 before it.
__global__ void next_direction(const double* squares, const float2* residual, float2* direction,
                               std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const auto beta = static_cast<float>(squares[0] > 0 ? squares[1] / squares[0] : 0);
    direction[i].x = residual[i].x + beta * direction[i].x;
    direction[i].y = residual[i].y + beta * direction[i].y;
}

// mu = |phi|^2, whose sums are Q.
__global__ void square_phi(const float* phi_re, const float* phi_im, int count, float* mu_re, float* mu_im) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= count) return;
    mu_re[m] = phi_re[m] * phi_re[m] + phi_im[m] * phi_im[m];
    mu_im[m] = 0;
}

// Element (x, y, z) of the differences, from -(n - 1) to n - 1, goes to its place modulo the padded
// extent: one thread per element of `out`, which has zeros elsewhere.
__global__ void wrap_differences(const float* re, const float* im, Grid differences, float2* out,
                                 Grid padded) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= padded.count()) return;
    const auto place = [](std::size_t at, std::size_t n, std::size_t all) {
        const std::size_t middle = n / 2;                       // of the differences: n is odd
        return at <= middle ? at + middle : at + middle - all;  // huge, if it is none
    };
    const std::size_t x = place(i % padded.nx, differences.nx, padded.nx);
    const std::size_t y = place(i / padded.nx % padded.ny, differences.ny, padded.ny);
    const std::size_t z = place(i / padded.nx / padded.ny, differences.nz, padded.nz);
    const bool inside = x < differences.nx && y < differences.ny && z < differences.nz;
    const std::size_t from = (z * differences.ny + y) * differences.nx + x;
    out[i] = inside ? make_float2(re[from], im[from]) : make_float2(0, 0);
}

// The transform of Q is real, because Q(-delta) is the conjugate of Q(delta). z becomes the fastest
// index, and the factor of the inverse transform is put in.
__global__ void keep_real(const float2* spectrum, Grid padded, float* filter) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= padded.count()) return;
    const std::size_t plane = padded.nx * padded.ny;
    filter[i % plane * padded.nz + i / plane] = spectrum[i].x / static_cast<float>(padded.count());
}

}  // namespace day37
