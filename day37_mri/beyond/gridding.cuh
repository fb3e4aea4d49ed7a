// Day 37, beyond: gridding. A wave at any place of k-space is made of a few waves at the points of
// a regular grid, and the sum of those is a fast Fourier transform (FFT).
//
//   kernel              what is new                                      what limits it
//   spread_atomic       a thread per sample adds to the points near it   L2
//   spread_by_warps     a warp per sample: lanes have adjacent points    L2
//   spread_tiled        sorted by tile: the points in shared memory      shared memory
//
// Along each axis the grid has at least twice as many points as the image has voxels, or a single
// one if the image has one voxel there. A sample adds to `width` points along an axis, weighted by
// a Kaiser-Bessel window. Afterwards crop_image divides each voxel by the window's own transform.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.hpp"

namespace day37 {

constexpr int kSpreadBlock = 256;
constexpr int kSpreadWarps = kSpreadBlock / 32;

inline unsigned spread_blocks(std::size_t threads) {
    return static_cast<unsigned>((threads + kSpreadBlock - 1) / kSpreadBlock);
}

// The points of the grid, x fastest, and how many of them a sample has along each axis.
struct Points {
    int nx, ny, nz;
    int wx, wy, wz;
    int width;  // the largest of them

    __host__ __device__ std::size_t count() const { return std::size_t{1} * nx * ny * nz; }
};

// A window's place: its first point, and the sample's mu.
struct Window {
    int x, y, z;
    float re, im;
};

// An axis of the image and of the grid. A sample at k periods per field of view is at k * scale
// points.
struct WindowAxis {
    double scale;
    int points, width;
    double half_voxel;  // in half fields of view, for an even number of voxels; else 0
};

// The window, from -width / 2 to width / 2 points around a sample, is 1 in the middle.
struct KaiserBessel {
    float beta, scale;  // scale = 1 / I0(beta)

    __device__ float at(float points, int width) const {
        const float t = 2 * points / static_cast<float>(width);
        return scale * cyl_bessel_i0f(beta * sqrtf(fmaxf(0.0f, 1 - t * t)));
    }
};

// Along one axis: the weights of `width` points, of which the first is returned. Places are
// computed in double: once per sample, that costs little. Whole turns around the grid are left out,
// so that the first point exists for any k. If k is NaN or infinite, mu becomes NaN.
__device__ inline int place_window(float k, WindowAxis axis, KaiserBessel window, float* weights) {
    if (axis.points == 1) {
        weights[0] = 1;
        return 0;
    }
    const double place = fmod(static_cast<double>(k) * axis.scale, static_cast<double>(axis.points));
    const double first = ceil(place - 0.5 * axis.width);
    for (int i = 0; i < axis.width; ++i)
        weights[i] = window.at(static_cast<float>(first - place) + static_cast<float>(i), axis.width);
    if (isnan(place)) return 0;
    const int point = static_cast<int>(first) % axis.points;
    return point < 0 ? point + axis.points : point;
}

// A thread per sample. weights[(3 m + axis) * width + i]: along axis 0 (x), 1 or 2, point i.
//
// The FFT has phase 0 at voxel n / 2. For an even n the middle of the image is half a voxel to the
// left of that; mu is turned by the phase of half a voxel.
__global__ void place_windows(const float* kx, const float* ky, const float* kz, const float* mu_re,
                              const float* mu_im, int samples, WindowAxis x, WindowAxis y, WindowAxis z,
                              KaiserBessel window, int width, Window* windows, float* weights) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= samples) return;
    float* const of_sample = weights + std::size_t{3} * width * m;
    Window placed{};
    placed.x = place_window(kx[m], x, window, of_sample);
    placed.y = place_window(ky[m], y, window, of_sample + width);
    placed.z = place_window(kz[m], z, window, of_sample + 2 * width);
    const double half_turns = static_cast<double>(kx[m]) * x.half_voxel +
                              static_cast<double>(ky[m]) * y.half_voxel +
                              static_cast<double>(kz[m]) * z.half_voxel;
    double sine, cosine;
    sincospi(half_turns, &sine, &cosine);
    placed.re = static_cast<float>(mu_re[m] * cosine - mu_im[m] * sine);
    placed.im = static_cast<float>(mu_im[m] * cosine + mu_re[m] * sine);
    windows[m] = placed;
}

// Idea: as the formula reads. A thread per sample adds mu times the weights to the points near it;
// beyond its end, the grid goes on at its start.
// Cost removed: all voxels but these points: width^3 additions per sample, for any number of
// voxels.
// Still limits it: L2, 98 % busy. Each lane adds somewhere else, a sector for each atomic.
__global__ void spread_atomic(const Window* windows, const float* weights, int samples, Points p,
                              float2* grid) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= samples) return;
    const Window w = windows[m];
    const float* const along_x = weights + std::size_t{3} * p.width * m;
    const float* const along_y = along_x + p.width;
    const float* const along_z = along_y + p.width;
    for (int k = 0; k < p.wz; ++k) {
        for (int j = 0; j < p.wy; ++j) {
            const float weight = along_z[k] * along_y[j];
            float2* const row = grid + (std::size_t{1} * ((w.z + k) % p.nz) * p.ny + (w.y + j) % p.ny) * p.nx;
            for (int i = 0; i < p.wx; ++i) {
                float2* const point = row + (w.x + i) % p.nx;
                atomicAdd(&point->x, weight * along_x[i] * w.re);
                atomicAdd(&point->y, weight * along_x[i] * w.im);
            }
        }
    }
}

inline void launch_spread_atomic(const Window* windows, const float* weights, int samples, Points p,
                                 float2* grid, cudaStream_t stream) {
    cudaMemsetAsync(grid, 0, p.count() * sizeof(float2), stream);
    spread_atomic<<<spread_blocks(samples), kSpreadBlock, 0, stream>>>(windows, weights, samples, p, grid);
}

// Idea: a warp per sample. Its lanes have points that are adjacent along x.
// Cost removed: a sector of its own for each lane; the loads of the sample are broadcast.
// Still limits it: L2, 95 % busy with the additions, each of which is one in global memory. All
// three steps of gridding take 2.14 ms for 1,000,000 samples and windows of 6 points, 4.47 with
// `spread_atomic`.
__global__ void spread_by_warps(const Window* windows, const float* weights, int samples, Points p,
                                float2* grid) {
    const int m = static_cast<int>(blockIdx.x * kSpreadWarps + threadIdx.x / 32);
    if (m >= samples) return;
    const Window w = windows[m];
    const float* const along_x = weights + std::size_t{3} * p.width * m;
    const float* const along_y = along_x + p.width;
    const float* const along_z = along_y + p.width;
    const int all = p.wx * p.wy * p.wz;
    for (int n = static_cast<int>(threadIdx.x % 32); n < all; n += 32) {
        const int i = n % p.wx;
        const int j = n / p.wx % p.wy;
        const int k = n / (p.wx * p.wy);
        const float weight = along_z[k] * along_y[j] * along_x[i];
        const std::size_t row = std::size_t{1} * ((w.z + k) % p.nz) * p.ny + (w.y + j) % p.ny;
        float2* const point = grid + row * p.nx + (w.x + i) % p.nx;
        atomicAdd(&point->x, weight * w.re);
        atomicAdd(&point->y, weight * w.im);
    }
}

inline void launch_spread_by_warps(const Window* windows, const float* weights, int samples, Points p,
                                   float2* grid, cudaStream_t stream) {
    cudaMemsetAsync(grid, 0, p.count() * sizeof(float2), stream);
    spread_by_warps<<<spread_blocks(std::size_t{32} * samples), kSpreadBlock, 0, stream>>>(windows, weights,
                                                                                           samples, p, grid);
}

// Tiles of points. A window that starts in a tile may leave it by `width` - 1 points.
constexpr int kSpreadTileX = 16;
constexpr int kSpreadTileY = 16;
constexpr int kSpreadTileZ = 2;

struct SpreadTiles {
    int nx, ny, nz;  // tiles along each axis
    int lx, ly, lz;  // points in shared memory, along each axis

    __host__ __device__ int count() const { return nx * ny * nz; }
    __host__ __device__ int local() const { return lx * ly * lz; }
    __device__ int of(const Window& w) const {
        return (w.z / kSpreadTileZ * ny + w.y / kSpreadTileY) * nx + w.x / kSpreadTileX;
    }
};

inline SpreadTiles spread_tiles(Points p) {
    const auto tiles = [](int points, int tile) { return (points + tile - 1) / tile; };
    const auto local = [](int points, int tile, int width) {
        return (points < tile ? points : tile) + width - 1;
    };
    return {tiles(p.nx, kSpreadTileX),       tiles(p.ny, kSpreadTileY),
            tiles(p.nz, kSpreadTileZ),       local(p.nx, kSpreadTileX, p.wx),
            local(p.ny, kSpreadTileY, p.wy), local(p.nz, kSpreadTileZ, p.wz)};
}

// A counting sort by tile (days 12 and 16). First the number of samples of each tile: the atomic
// returns how many came before.
__global__ void count_in_tiles(const Window* windows, int samples, SpreadTiles tiles, int* counts,
                               int* ranks) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m < samples) ranks[m] = atomicAdd(&counts[tiles.of(windows[m])], 1);
}

// Then, by one block, where each tile starts; starts[tiles] is the number of samples. A thread has
// some adjacent tiles.
__global__ void scan_tiles(const int* counts, int tiles, int* starts) {
    __shared__ int sums[kSpreadBlock];
    const int thread = static_cast<int>(threadIdx.x);
    const int share = (tiles + kSpreadBlock - 1) / kSpreadBlock;
    const int first = min(tiles, thread * share);
    const int end = min(tiles, first + share);
    int sum = 0;
    for (int tile = first; tile < end; ++tile)
        sum += counts[tile];
    sums[thread] = sum;
    for (int step = 1; step < kSpreadBlock; step *= 2) {
        __syncthreads();  // the sums of the step before
        const int before = thread >= step ? sums[thread - step] : 0;
        __syncthreads();  // all have loaded them
        sums[thread] += before;
    }
    int start = sums[thread] - sum;
    for (int tile = first; tile < end; ++tile) {
        starts[tile] = start;
        start += counts[tile];
    }
    if (thread == kSpreadBlock - 1) starts[tiles] = sums[thread];
}

// Then the samples' numbers, tile after tile.
__global__ void order_by_tile(const Window* windows, int samples, SpreadTiles tiles, const int* starts,
                              const int* ranks, int* order) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m < samples) order[starts[tiles.of(windows[m])] + ranks[m]] = m;
}

// Idea: sort the samples by the tile that their window starts in. A block has a tile and its margin
// in shared memory, where all its samples add; each point is added to global memory once.
// Cost removed: most atomics in global memory.
// Still limits it: shared memory, with the L1 cache in the same unit 64 % busy. It pays for many
// samples only: all steps take 1.89 ms in place of 2.14 for 1,000,000, but 435 us in place of 310
// for 3,000 and 128^3 voxels.
__global__ void spread_tiled(const Window* windows, const float* weights, const int* starts, const int* order,
                             SpreadTiles tiles, Points p, float2* grid) {
    extern __shared__ float2 tile[];  // tiles.lz x tiles.ly x tiles.lx points
    const int number = static_cast<int>(blockIdx.x);
    const int first = starts[number];
    const int end = starts[number + 1];
    if (first == end) return;
    const int tile_x = number % tiles.nx * kSpreadTileX;
    const int tile_y = number / tiles.nx % tiles.ny * kSpreadTileY;
    const int tile_z = number / tiles.nx / tiles.ny * kSpreadTileZ;
    const int thread = static_cast<int>(threadIdx.x);
    for (int n = thread; n < tiles.local(); n += kSpreadBlock)
        tile[n] = make_float2(0, 0);
    __syncthreads();  // all points are 0
    const int all = p.wx * p.wy * p.wz;
    for (int s = first + thread / 32; s < end; s += kSpreadWarps) {
        const int m = order[s];
        const Window w = windows[m];
        const float* const along_x = weights + std::size_t{3} * p.width * m;
        const float* const along_y = along_x + p.width;
        const float* const along_z = along_y + p.width;
        float2* const corner = tile + ((w.z - tile_z) * tiles.ly + w.y - tile_y) * tiles.lx + w.x - tile_x;
        for (int n = thread % 32; n < all; n += 32) {
            const int i = n % p.wx;
            const int j = n / p.wx % p.wy;
            const int k = n / (p.wx * p.wy);
            const float weight = along_z[k] * along_y[j] * along_x[i];
            float2* const point = corner + (k * tiles.ly + j) * tiles.lx + i;
            atomicAdd(&point->x, weight * w.re);
            atomicAdd(&point->y, weight * w.im);
        }
    }
    __syncthreads();  // all samples are in the tile
    for (int n = thread; n < tiles.local(); n += kSpreadBlock) {
        const float2 sum = tile[n];
        if (sum.x == 0 && sum.y == 0) continue;  // no sample was near
        const int x = (tile_x + n % tiles.lx) % p.nx;
        const int y = (tile_y + n / tiles.lx % tiles.ly) % p.ny;
        const int z = (tile_z + n / tiles.lx / tiles.ly) % p.nz;
        float2* const point = grid + (std::size_t{1} * z * p.ny + y) * p.nx + x;
        atomicAdd(&point->x, sum.x);
        atomicAdd(&point->y, sum.y);
    }
}

// Memory of the sort: `counts` and `starts` have one element per tile, and `starts` one more;
// `ranks` and `order` have one per sample.
struct TileOrder {
    int *counts, *starts, *ranks, *order;
};

inline void launch_spread_tiled(const Window* windows, const float* weights, int samples, TileOrder sorted,
                                Points p, float2* grid, cudaStream_t stream) {
    const SpreadTiles tiles = spread_tiles(p);
    cudaMemsetAsync(grid, 0, p.count() * sizeof(float2), stream);
    cudaMemsetAsync(sorted.counts, 0, tiles.count() * sizeof(int), stream);
    count_in_tiles<<<spread_blocks(samples), kSpreadBlock, 0, stream>>>(windows, samples, tiles,
                                                                        sorted.counts, sorted.ranks);
    scan_tiles<<<1, kSpreadBlock, 0, stream>>>(sorted.counts, tiles.count(), sorted.starts);
    order_by_tile<<<spread_blocks(samples), kSpreadBlock, 0, stream>>>(windows, samples, tiles, sorted.starts,
                                                                       sorted.ranks, sorted.order);
    const std::size_t shared = tiles.local() * sizeof(float2);
    spread_tiled<<<static_cast<unsigned>(tiles.count()), kSpreadBlock, shared, stream>>>(
        windows, weights, sorted.starts, sorted.order, tiles, p, grid);
}

// What a window's transform divides by, per voxel along each axis.
struct Roll {
    const float *x, *y, *z;
};

// A thread per voxel: its point of the transformed grid, divided by the window's transform
// (deapodisation). Voxel n / 2 is at point 0, and voxels to the left of it are at the grid's end.
__global__ void crop_image(const float2* transformed, Points p, Roll roll, Grid image, float* re, float* im) {
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= image.count()) return;
    const std::size_t x = n % image.nx;
    const std::size_t y = n / image.nx % image.ny;
    const std::size_t z = n / image.nx / image.ny;
    const auto point = [](std::size_t at, std::size_t voxels, int points) {
        const std::size_t middle = voxels / 2;
        return at >= middle ? at - middle : at + points - middle;
    };
    const float2 value = transformed[(point(z, image.nz, p.nz) * p.ny + point(y, image.ny, p.ny)) * p.nx +
                                     point(x, image.nx, p.nx)];
    const float factor = roll.x[x] * roll.y[y] * roll.z[z];
    re[n] = factor * value.x;
    im[n] = factor * value.y;
}

}  // namespace day37
