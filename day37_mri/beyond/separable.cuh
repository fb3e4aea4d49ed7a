// Day 37, beyond: on a grid, a wave is the product of three, one along each axis. Their values fit
// into tables, and the sum over the samples becomes a matrix product.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.hpp"
#include "mri.cuh"

namespace day37 {

// Of each sample, the waves along the axes: cosine and sine. x has only the right half of the
// voxels; the left half is its mirror image. z is multiplied by mu.
struct AxisTables {
    float2 *x, *y, *z;
    int nx, ny, nz;  // columns
};

// exp(i 2 pi k (i - (n - 1) / 2) / field), for voxel i of n, `field` of which are one field of
// view.
// In double: the tables are small.
__device__ inline double2 axis_wave(float k, int i, std::size_t n, std::size_t field) {
    const double from_middle = i - (static_cast<double>(n) - 1) / 2;
    const double position = from_middle / static_cast<double>(field);
    double sine, cosine;
    sincospi(2 * static_cast<double>(k) * position, &sine, &cosine);
    return make_double2(cosine, sine);
}

__device__ inline float2 to_float2(double2 value) {
    return make_float2(static_cast<float>(value.x), static_cast<float>(value.y));
}

// A block per sample.
__global__ void compute_axis_tables(Samples s, Mu mu, Grid grid, Grid field, AxisTables tables) {
    const int all = tables.nx + tables.ny + tables.nz;
    for (std::size_t m = blockIdx.x; m < static_cast<std::size_t>(s.count); m += gridDim.x) {
        for (int i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
            const int row = i - tables.nx;
            const int plane = row - tables.ny;
            if (i < tables.nx) {
                const int right = static_cast<int>(grid.nx / 2) + i;
                tables.x[m * tables.nx + i] = to_float2(axis_wave(s.kx[m], right, grid.nx, field.nx));
            } else if (row < tables.ny) {
                tables.y[m * tables.ny + row] = to_float2(axis_wave(s.ky[m], row, grid.ny, field.ny));
            } else {
                const double2 w = axis_wave(s.kz[m], plane, grid.nz, field.nz);
                const double re = mu.re[m] * w.x - mu.im[m] * w.y;
                const double im = mu.re[m] * w.y + mu.im[m] * w.x;
                tables.z[m * tables.nz + plane] = to_float2(make_double2(re, im));
            }
        }
    }
}

// The tables in axis_table_floats() floats.
inline AxisTables axis_tables_in(float* memory, std::size_t samples, Grid grid) {
    AxisTables tables{};
    tables.nx = static_cast<int>((grid.nx + 1) / 2);
    tables.ny = static_cast<int>(grid.ny);
    tables.nz = static_cast<int>(grid.nz);
    tables.x = reinterpret_cast<float2*>(memory);
    tables.y = tables.x + samples * tables.nx;
    tables.z = tables.y + samples * tables.ny;
    return tables;
}

constexpr int kTilePairs = 64;  // voxels of the right half of x, of a block
constexpr int kTileRows = 64;   // rows of voxels (y and z), of a block
constexpr int kDepth = 16;      // samples in shared memory
constexpr int kSide = 16;       // a block has 16 x 16 threads, each with 4 x 4 pairs and rows

// Idea: separation. Of a sample, row (y, z) has one complex number, g = mu times the waves along y
// and z; the wave along x gives all voxels of the row. That is a product of two matrices: the waves
// along x, and g, summed over the samples. A mirrored pair of voxels needs four multiply-adds.
// Cost removed: sines in the loop, and their phases. A thread loads 16 floats for 64 multiply-adds.
// Still limits it: issue slots, 67 % busy. By arithmetic, its multiply-adds need 0.38 of its 0.755
// ms for 128^3 voxels and 3,000 samples. 64^3 voxels take half as long, although they are an eighth
// as many: half of each tile along x is empty, and there are 64 blocks for the 132 SMs of an H200.
__global__ void __launch_bounds__(kSide* kSide)
    multiply_tables(AxisTables tables, int samples, Grid grid, Sums out) {
    alignas(16) __shared__ float2 along_x[kDepth][kTilePairs];
    alignas(16) __shared__ float2 of_row[kDepth][kTileRows];  // g
    const int thread = static_cast<int>(threadIdx.x);
    const int tx = thread % kSide;
    const int ty = thread / kSide;
    const int first_pair = static_cast<int>(blockIdx.y) * kTilePairs;
    const std::size_t first_row = std::size_t{blockIdx.x} * kTileRows;

    // This thread loads one column of both tiles, in every fourth row.
    const int column = thread % kTilePairs;
    const int depth = thread / kTilePairs;
    const bool has_pair = first_pair + column < tables.nx;
    const bool has_row = first_row + column < grid.rows();
    const int y = has_row ? static_cast<int>((first_row + column) % grid.ny) : 0;
    const int z = has_row ? static_cast<int>((first_row + column) / grid.ny) : 0;

    float re_cos[4][4] = {}, re_sin[4][4] = {}, im_cos[4][4] = {}, im_sin[4][4] = {};  // [row][pair]
    for (int first = 0; first < samples; first += kDepth) {
#pragma unroll
        for (int d = depth; d < kDepth; d += kSide * kSide / kTilePairs) {
            const std::size_t m = std::size_t{1} * first + d;
            const bool has_sample = first + d < samples;
            along_x[d][column] =
                has_sample && has_pair ? tables.x[m * tables.nx + first_pair + column] : make_float2(0, 0);
            float2 g = make_float2(0, 0);
            if (has_sample && has_row) {
                const float2 wy = tables.y[m * tables.ny + y];
                const float2 wz = tables.z[m * tables.nz + z];
                g = make_float2(wy.x * wz.x - wy.y * wz.y, wy.x * wz.y + wy.y * wz.x);
            }
            of_row[d][column] = g;
        }
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int d = 0; d < kDepth; ++d) {
            float2 wave[4], g[4];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 w = *reinterpret_cast<const float4*>(&along_x[d][half * 32 + 2 * tx]);
                wave[2 * half] = make_float2(w.x, w.y);
                wave[2 * half + 1] = make_float2(w.z, w.w);
                const float4 r = *reinterpret_cast<const float4*>(&of_row[d][half * 32 + 2 * ty]);
                g[2 * half] = make_float2(r.x, r.y);
                g[2 * half + 1] = make_float2(r.z, r.w);
            }
#pragma unroll
            for (int row = 0; row < 4; ++row) {
#pragma unroll
                for (int pair = 0; pair < 4; ++pair) {
                    re_cos[row][pair] += g[row].x * wave[pair].x;
                    re_sin[row][pair] += g[row].x * wave[pair].y;
                    im_cos[row][pair] += g[row].y * wave[pair].x;
                    im_sin[row][pair] += g[row].y * wave[pair].y;
                }
            }
        }
        __syncthreads();  // all have used the tiles
    }
#pragma unroll
    for (int row = 0; row < 4; ++row) {
        const std::size_t voxel_row = first_row + row / 2 * 32 + 2 * ty + row % 2;
        if (voxel_row >= grid.rows()) continue;
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const int in_half = first_pair + pair / 2 * 32 + 2 * tx + pair % 2;
            if (in_half >= tables.nx) continue;
            const std::size_t right = voxel_row * grid.nx + grid.nx / 2 + in_half;
            const std::size_t left = voxel_row * grid.nx + (grid.nx - 1) / 2 - in_half;
            out.re[right] = re_cos[row][pair] - im_sin[row][pair];
            out.im[right] = im_cos[row][pair] + re_sin[row][pair];
            out.re[left] = re_cos[row][pair] + im_sin[row][pair];
            out.im[left] = im_cos[row][pair] - re_sin[row][pair];
        }
    }
}

inline void launch_tables(Samples s, Mu mu, Grid grid, Grid field, Sums out, AxisTables tables,
                          cudaStream_t stream) {
    const int table_blocks = s.count < 65536 ? s.count : 65536;
    compute_axis_tables<<<table_blocks, 128, 0, stream>>>(s, mu, grid, field, tables);
    const dim3 blocks(static_cast<unsigned>((grid.rows() + kTileRows - 1) / kTileRows),
                      static_cast<unsigned>((tables.nx + kTilePairs - 1) / kTilePairs));
    multiply_tables<<<blocks, kSide * kSide, 0, stream>>>(tables, s.count, grid, out);
}

inline void launch_separable(Samples s, Mu mu, Grid grid, Sums out, AxisTables tables, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    launch_tables(s, mu, grid, grid, out, tables, stream);
}

}  // namespace day37
