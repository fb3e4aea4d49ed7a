// Day 37, beyond: fewer sines per wave, for voxels on a regular grid. A thread has voxels that lie
// symmetrically, or in a run along x, and gets most of its waves from one sine and one cosine.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.hpp"
#include "mri.cuh"

namespace day37 {

constexpr int kPairs = 2;  // of voxels, per thread of gather_mirrored

// The four real sums of a voxel and of its mirror image, over mu times cosine and sine.
struct MirroredSums {
    float re_cos = 0, re_sin = 0, im_cos = 0, im_sin = 0;

    __device__ void add(float mu_re, float mu_im, float cosine, float sine) {
        re_cos += mu_re * cosine;
        re_sin += mu_re * sine;
        im_cos += mu_im * cosine;
        im_sin += mu_im * sine;
    }
    // The sine of the mirror image has the other sign.
    __device__ void store(Sums out, std::size_t voxel, std::size_t mirror) const {
        out.re[voxel] = re_cos - im_sin;
        out.im[voxel] = im_cos + re_sin;
        out.re[mirror] = re_cos + im_sin;
        out.im[mirror] = im_cos - re_sin;
    }
    // The same for two voxels of a row, of which either may be outside.
    __device__ void store_inside(Sums out, std::size_t row_start, std::size_t nx, std::size_t right,
                                 std::size_t left) const {
        if (right < nx) {
            out.re[row_start + right] = re_cos - im_sin;
            out.im[row_start + right] = im_cos + re_sin;
        }
        if (left < nx) {
            out.re[row_start + left] = re_cos + im_sin;
            out.im[row_start + left] = im_cos - re_sin;
        }
    }
};

// Idea: voxel N - 1 - n is the mirror image of voxel n, so its phase is the negative one: the same
// cosine, and the sine with the other sign.
// Cost removed: half of the phases, sines and cosines, and half of the multiply-adds of the sums.
// Still limits it: the special function units, 79 % busy: two results for two voxels. Half the work
// is half the time: 1.97 ms for 128^3 voxels, 4.17 for `coarsened`.
__global__ void gather_mirrored(Samples s, Mu mu, Positions r, Sums out) {
    __shared__ float4 tile[kTile];  // kx, ky, kz, mu_re
    __shared__ float tile_mu_im[kTile];
    const int thread = static_cast<int>(threadIdx.x);
    const std::size_t half = (r.count + 1) / 2;
    const std::size_t first_voxel = std::size_t{blockIdx.x} * (kPairs * kBlock) + threadIdx.x;
    float x[kPairs], y[kPairs], z[kPairs];
    MirroredSums sums[kPairs];
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        const std::size_t n = first_voxel + std::size_t{kBlock} * p;
        x[p] = n < half ? r.x[n] : 0;
        y[p] = n < half ? r.y[n] : 0;
        z[p] = n < half ? r.z[n] : 0;
    }
    for (int first = 0; first < s.count; first += kTile) {
        const int m = first + thread;
        if (m < s.count) {
            tile[thread] = make_float4(s.kx[m], s.ky[m], s.kz[m], mu.re[m]);
            tile_mu_im[thread] = mu.im[m];
        }
        __syncthreads();  // the tile is complete
        const int count = min(kTile, s.count - first);
        for (int i = 0; i < count; ++i) {
            const float4 sample = tile[i];
            const float mu_im = tile_mu_im[i];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                float sine, cosine;
                fast_wave(sample.x * x[p] + sample.y * y[p] + sample.z * z[p], &sine, &cosine);
                sums[p].add(sample.w, mu_im, cosine, sine);
            }
        }
        __syncthreads();  // all have used the tile
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        const std::size_t n = first_voxel + std::size_t{kBlock} * p;
        if (n < half) sums[p].store(out, n, r.count - 1 - n);
    }
}

inline void launch_mirrored(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    const std::size_t threads = ((r.count + 1) / 2 + kPairs - 1) / kPairs;
    gather_mirrored<<<blocks_for_each(threads), kBlock, 0, stream>>>(s, mu, r, out);
}

constexpr int kRun = 16;  // voxels along x, per thread of gather_rotation

// The factor of a wave from one voxel to the next one along x. Once per sample, so double costs
// little.
__global__ void compute_steps(Samples s, std::size_t nx, float2* steps) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= s.count) return;
    double sine, cosine;
    sincospi(2 * static_cast<double>(s.kx[m]) / static_cast<double>(nx), &sine, &cosine);
    steps[m] = make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

// Idea: a recurrence. From one voxel to the next along x, a wave is multiplied by the same complex
// number: rotated. Only the first voxel of a run of 16 needs a sine and a cosine.
// Cost removed: 15 of 16 sines and cosines.
// Still limits it: the FMA units, 80 % busy: four multiply-adds for the rotation, and two
// additions. 64^3 voxels are only 64 blocks, fewer than an H200 has SMs: there it takes 475 us,
// longer than `mirrored`.
//
// Each rotation adds an error of at most 2 eps: sqrt(5) / 2 eps for the product (R. Brent, C.
// Percival, P. Zimmermann, 2007), and sqrt(2) / 2 for the rounded step. So the last wave of a run
// is off by at most 30 eps more than the first.
__global__ void gather_rotation(Samples s, Mu mu, const float2* steps, Positions r, Grid grid, Sums out) {
    __shared__ float4 tile[kTile];         // kx, ky, kz, mu_re
    __shared__ float4 tile_rotate[kTile];  // mu_im, the step
    const int thread = static_cast<int>(threadIdx.x);
    const std::size_t runs_of_row = (grid.nx + kRun - 1) / kRun;
    const std::size_t run = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = run / runs_of_row;
    const std::size_t column = run % runs_of_row * kRun;  // of the run's first voxel
    const std::size_t first_voxel = row * grid.nx + column;
    const bool inside = row < grid.rows();
    const float x = inside ? r.x[first_voxel] : 0;
    const float y = inside ? r.y[first_voxel] : 0;
    const float z = inside ? r.z[first_voxel] : 0;
    float re[kRun] = {};
    float im[kRun] = {};
    for (int first = 0; first < s.count; first += kTile) {
        const int m = first + thread;
        if (m < s.count) {
            tile[thread] = make_float4(s.kx[m], s.ky[m], s.kz[m], mu.re[m]);
            tile_rotate[thread] = make_float4(mu.im[m], steps[m].x, steps[m].y, 0);
        }
        __syncthreads();  // the tile is complete
        const int count = min(kTile, s.count - first);
        for (int i = 0; i < count; ++i) {
            const float4 sample = tile[i];
            const float4 rotate = tile_rotate[i];
            float sine, cosine;
            fast_wave(sample.x * x + sample.y * y + sample.z * z, &sine, &cosine);
            float wave_re = sample.w * cosine - rotate.x * sine;
            float wave_im = rotate.x * cosine + sample.w * sine;
#pragma unroll
            for (int v = 0; v < kRun; ++v) {
                re[v] += wave_re;
                im[v] += wave_im;
                const float rotated = wave_re * rotate.y - wave_im * rotate.z;
                wave_im = wave_im * rotate.y + wave_re * rotate.z;
                wave_re = rotated;
            }
        }
        __syncthreads();  // all have used the tile
    }
    if (!inside) return;
#pragma unroll
    for (int v = 0; v < kRun; ++v) {
        if (column + v < grid.nx) {
            out.re[first_voxel + v] = re[v];
            out.im[first_voxel + v] = im[v];
        }
    }
}

inline void launch_rotation(Samples s, Mu mu, Positions r, Grid grid, Sums out, float2* steps,
                            cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    compute_steps<<<blocks_for_each(s.count), kBlock, 0, stream>>>(s, grid.nx, steps);
    const std::size_t runs = (grid.nx + kRun - 1) / kRun * grid.rows();
    gather_rotation<<<blocks_for_each(runs), kBlock, 0, stream>>>(s, mu, steps, r, grid, out);
}

constexpr int kHalfRun = 4;  // a run has four pairs of voxels, and a thread has runs of two rows
constexpr int kRows = 2;
constexpr int kRunBlock = 128;

// Of a sample: cosine and sine of the phase from the middle of a run to its voxels on the right.
struct HalfRun {
    float4 cosine, sine;
};

__global__ void compute_half_runs(Samples s, std::size_t nx, HalfRun* half_runs) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= s.count) return;
    const double step = static_cast<double>(s.kx[m]) / static_cast<double>(nx);
    double sine[kHalfRun], cosine[kHalfRun];
    for (int v = 0; v < kHalfRun; ++v)
        sincospi((2 * v + 1) * step, &sine[v], &cosine[v]);
    half_runs[m].cosine = make_float4(static_cast<float>(cosine[0]), static_cast<float>(cosine[1]),
                                      static_cast<float>(cosine[2]), static_cast<float>(cosine[3]));
    half_runs[m].sine = make_float4(static_cast<float>(sine[0]), static_cast<float>(sine[1]),
                                    static_cast<float>(sine[2]), static_cast<float>(sine[3]));
}

// Idea: mirrored runs. The wave at the middle of a run, times mu, replaces mu; the phase from the
// middle to a voxel depends only on the sample, so it comes from a table. The voxels to the left
// are mirror images of those to the right.
// Cost removed: the rotations, and half of the additions: two multiply-adds per voxel and sample.
// Still limits it: issue slots, 78 % busy, mostly with multiply-adds (FMA 63 %). By arithmetic, the
// two of each voxel and sample need 0.38 of its 1.08 ms for 128^3 voxels and 3,000 samples.
__global__ void gather_mirrored_runs(Samples s, Mu mu, const HalfRun* half_runs, Positions r, Grid grid,
                                     Sums out) {
    __shared__ float4 tile[kRunBlock];  // kx, ky, kz, mu_re
    __shared__ float tile_mu_im[kRunBlock];
    __shared__ float4 tile_cosine[kRunBlock];  // of half a run
    __shared__ float4 tile_sine[kRunBlock];
    const int thread = static_cast<int>(threadIdx.x);
    const std::size_t runs_of_row = (grid.nx + 2 * kHalfRun - 1) / (2 * kHalfRun);
    const std::size_t run = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t first_row = run / runs_of_row * kRows;
    const std::size_t middle = run % runs_of_row * (2 * kHalfRun) + kHalfRun;  // right of it
    // The middle is half a voxel to the left of voxel `middle`, which may be outside.
    const auto twice_x =
        static_cast<float>(2 * static_cast<long long>(middle) - static_cast<long long>(grid.nx));
    const float x = twice_x / static_cast<float>(2 * grid.nx);
    float y[kRows], z[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const bool inside = first_row + row < grid.rows();
        y[row] = inside ? r.y[(first_row + row) * grid.nx] : 0;
        z[row] = inside ? r.z[(first_row + row) * grid.nx] : 0;
    }
    MirroredSums sums[kRows][kHalfRun];
    for (int first = 0; first < s.count; first += kRunBlock) {
        const int m = first + thread;
        if (m < s.count) {
            tile[thread] = make_float4(s.kx[m], s.ky[m], s.kz[m], mu.re[m]);
            tile_mu_im[thread] = mu.im[m];
            tile_cosine[thread] = half_runs[m].cosine;
            tile_sine[thread] = half_runs[m].sine;
        }
        __syncthreads();  // the tile is complete
        const int count = min(kRunBlock, s.count - first);
        for (int i = 0; i < count; ++i) {
            const float4 sample = tile[i];
            const float mu_im = tile_mu_im[i];
            const HalfRun to_right = {tile_cosine[i], tile_sine[i]};
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                float sine, cosine;
                fast_wave(sample.x * x + sample.y * y[row] + sample.z * z[row], &sine, &cosine);
                const float wave_re = sample.w * cosine - mu_im * sine;
                const float wave_im = mu_im * cosine + sample.w * sine;
                sums[row][0].add(wave_re, wave_im, to_right.cosine.x, to_right.sine.x);
                sums[row][1].add(wave_re, wave_im, to_right.cosine.y, to_right.sine.y);
                sums[row][2].add(wave_re, wave_im, to_right.cosine.z, to_right.sine.z);
                sums[row][3].add(wave_re, wave_im, to_right.cosine.w, to_right.sine.w);
            }
        }
        __syncthreads();  // all have used the tile
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= grid.rows()) return;
        const std::size_t row_start = (first_row + row) * grid.nx;
#pragma unroll
        for (int v = 0; v < kHalfRun; ++v)
            sums[row][v].store_inside(out, row_start, grid.nx, middle + v, middle - 1 - v);
    }
}

inline void launch_mirrored_runs(Samples s, Mu mu, Positions r, Grid grid, Sums out, HalfRun* half_runs,
                                 cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    compute_half_runs<<<blocks_for_each(s.count), kBlock, 0, stream>>>(s, grid.nx, half_runs);
    const std::size_t runs_of_row = (grid.nx + 2 * kHalfRun - 1) / (2 * kHalfRun);
    const std::size_t threads = runs_of_row * ((grid.rows() + kRows - 1) / kRows);
    const auto blocks = static_cast<unsigned>((threads + kRunBlock - 1) / kRunBlock);
    gather_mirrored_runs<<<blocks, kRunBlock, 0, stream>>>(s, mu, half_runs, r, grid, out);
}

}  // namespace day37
