// Day 37: iterative MRI reconstruction.                                PMPP chapter 17 (4th edition)
//
//   version           what is new                                        what limits it
//   scatter_atomic    a thread per sample adds to every voxel            latency: few threads
//   gather            the loops exchanged: a thread per voxel            issue slots
//   registers         sum and position in registers                      issue slots
//   constant_chunks   samples in constant memory, chunk by chunk         constant memory
//   hardware_trig     sine and cosine by the special function units      constant memory
//   shared_tile       samples in shared memory, one as float4 and float  special functions, issue slots
//
// A scanner measures M samples d of k-space, at the places k. Each contributes a wave to each of N
// voxels, at the positions r:
//
//     out(n) = sum over m of mu(m) * exp(i 2 pi (kx x + ky y + kz z)),      mu = conj(phi) * d
//
// Each kernel is followed by its launch. beyond/ has versions for voxels on a regular grid.
//
//   ./course run day37                                every version, verified and timed
//   ./course run day37 --program                      program.cu: one sum, from main() to the result
//   ./course inspect day37 --only registers           requests and sectors, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day37 {

struct Samples {
    const float *kx, *ky, *kz;     // where in k-space, in periods per field of view
    const float *phi_re, *phi_im;  // the model's factor of that sample
    const float *d_re, *d_im;      // what the scanner measured
    int count;
};

struct Positions {
    const float *x, *y, *z;  // of voxels, in fields of view
    std::size_t count;
};

struct Sums {
    float *re, *im;  // one per voxel
};

constexpr int kBlock = 256;
constexpr float kTwoPi = 6.2831853071795865f;

inline unsigned blocks_for_each(std::size_t count) {
    return static_cast<unsigned>((count + kBlock - 1) / kBlock);
}

// Idea: a thread per sample, as the formula reads: it adds the sample's wave to all voxels.
// Cost removed: the loop over the samples.
// Still limits it: latency. 3,000 samples are 3,000 threads, 12 blocks for the 132 SMs of an H200,
// which wait for loads 78 % of their time (counters). The lanes of a warp add to the same voxel
// at the same time.
__global__ void scatter_atomic(Samples s, Positions r, Sums out) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= s.count) return;
    const float mu_re = s.phi_re[m] * s.d_re[m] + s.phi_im[m] * s.d_im[m];
    const float mu_im = s.phi_re[m] * s.d_im[m] - s.phi_im[m] * s.d_re[m];
    for (std::size_t n = 0; n < r.count; ++n) {
        const float turns = s.kx[m] * r.x[n] + s.ky[m] * r.y[n] + s.kz[m] * r.z[n];
        float sine, cosine;
        sincosf(kTwoPi * turns, &sine, &cosine);
        atomicAdd(&out.re[n], mu_re * cosine - mu_im * sine);
        atomicAdd(&out.im[n], mu_im * cosine + mu_re * sine);
    }
}

inline void launch_scatter_atomic(Samples s, Positions r, Sums out, cudaStream_t stream) {
    cudaMemsetAsync(out.re, 0, r.count * sizeof(float), stream);
    cudaMemsetAsync(out.im, 0, r.count * sizeof(float), stream);
    scatter_atomic<<<blocks_for_each(s.count), kBlock, 0, stream>>>(s, r, out);
}

// The two loops can be exchanged only if nothing stands between them. So the computation of mu
// moves to a kernel of its own: loop fission.
struct Mu {
    float *re, *im;  // one per sample
};

__global__ void compute_mu(Samples s, Mu mu) {
    const int m = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (m >= s.count) return;
    mu.re[m] = s.phi_re[m] * s.d_re[m] + s.phi_im[m] * s.d_im[m];
    mu.im[m] = s.phi_re[m] * s.d_im[m] - s.phi_im[m] * s.d_re[m];
}

inline void launch_compute_mu(Samples s, Mu mu, cudaStream_t stream) {
    if (s.count > 0) compute_mu<<<blocks_for_each(s.count), kBlock, 0, stream>>>(s, mu);
}

// Idea: loop interchange. A thread per voxel collects the waves of all samples.
// Cost removed: the atomics, because each sum has one thread.
// Still limits it: issue slots, 81 % busy. It loads and stores its sum for every sample, but most
// instructions are those of sincosf: for 128^3 voxels and 3,000 samples `registers` takes 14.4 ms
// on an H200, this kernel 16.9.
__global__ void gather(Samples s, Mu mu, Positions r, Sums out) {
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= r.count) return;
    out.re[n] = 0;
    out.im[n] = 0;
    for (int m = 0; m < s.count; ++m) {
        const float turns = s.kx[m] * r.x[n] + s.ky[m] * r.y[n] + s.kz[m] * r.z[n];
        float sine, cosine;
        sincosf(kTwoPi * turns, &sine, &cosine);
        out.re[n] += mu.re[m] * cosine - mu.im[m] * sine;
        out.im[n] += mu.im[m] * cosine + mu.re[m] * sine;
    }
}

inline void launch_gather(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    gather<<<blocks_for_each(r.count), kBlock, 0, stream>>>(s, mu, r, out);
}

// Idea: what does not change in the loop, and the sum, are in registers. The compiler may not do it
// by itself: as far as it knows, `out` and `x` overlap.
// Cost removed: nine of fourteen accesses per sample: position and sums, and mu, which a store made
// it load again.
// Still limits it: issue slots, 84 % busy with the instructions of sincosf. It also loads five
// values per sample, each from one address for all lanes.
__global__ void gather_registers(Samples s, Mu mu, Positions r, Sums out) {
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= r.count) return;
    const float x = r.x[n];
    const float y = r.y[n];
    const float z = r.z[n];
    float re = 0;
    float im = 0;
    for (int m = 0; m < s.count; ++m) {
        const float turns = s.kx[m] * x + s.ky[m] * y + s.kz[m] * z;
        float sine, cosine;
        sincosf(kTwoPi * turns, &sine, &cosine);
        re += mu.re[m] * cosine - mu.im[m] * sine;
        im += mu.im[m] * cosine + mu.re[m] * sine;
    }
    out.re[n] = re;
    out.im[n] = im;
}

inline void launch_registers(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    gather_registers<<<blocks_for_each(r.count), kBlock, 0, stream>>>(s, mu, r, out);
}

// Constant memory has 64 KB, so it holds a chunk of the samples. These arrays take 40 KB.
constexpr int kChunk = 2048;
__constant__ float constant_kx[kChunk], constant_ky[kChunk], constant_kz[kChunk];
__constant__ float constant_mu_re[kChunk], constant_mu_im[kChunk];

// Copies samples `first` to `first + count - 1` to constant memory. The copies are queued on the
// stream, so that an earlier kernel there still reads its own chunk.
inline void put_into_constant_memory(Samples s, Mu mu, int first, int count, cudaStream_t stream) {
    const std::size_t bytes = count * sizeof(float);
    const auto kind = cudaMemcpyDeviceToDevice;
    cudaMemcpyToSymbolAsync(constant_kx, s.kx + first, bytes, 0, kind, stream);
    cudaMemcpyToSymbolAsync(constant_ky, s.ky + first, bytes, 0, kind, stream);
    cudaMemcpyToSymbolAsync(constant_kz, s.kz + first, bytes, 0, kind, stream);
    cudaMemcpyToSymbolAsync(constant_mu_re, mu.re + first, bytes, 0, kind, stream);
    cudaMemcpyToSymbolAsync(constant_mu_im, mu.im + first, bytes, 0, kind, stream);
}

// Idea: all lanes need the same sample at the same time, so constant memory broadcasts it. A launch
// per chunk adds the chunk's waves to the sums.
// Cost removed: loads from global memory in the loop.
// Still limits it: the loads from constant memory: 80 % of the time warps wait for the constant
// cache (counters). For 128^3 voxels and 3,000 samples it takes 86.1 ms on an H200; the same loop
// with samples in global memory, `registers`, takes 14.4. Copies and launches are not the reason:
// they are the same for 64^3 voxels, where the two differ by 5.9 ms.
__global__ void gather_constant(int count, Positions r, Sums out) {
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= r.count) return;
    const float x = r.x[n];
    const float y = r.y[n];
    const float z = r.z[n];
    float re = out.re[n];
    float im = out.im[n];
    for (int m = 0; m < count; ++m) {
        const float turns = constant_kx[m] * x + constant_ky[m] * y + constant_kz[m] * z;
        float sine, cosine;
        sincosf(kTwoPi * turns, &sine, &cosine);
        re += constant_mu_re[m] * cosine - constant_mu_im[m] * sine;
        im += constant_mu_im[m] * cosine + constant_mu_re[m] * sine;
    }
    out.re[n] = re;
    out.im[n] = im;
}

inline void launch_constant_chunks(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    cudaMemsetAsync(out.re, 0, r.count * sizeof(float), stream);
    cudaMemsetAsync(out.im, 0, r.count * sizeof(float), stream);
    for (int first = 0; first < s.count; first += kChunk) {
        const int count = s.count - first < kChunk ? s.count - first : kChunk;
        put_into_constant_memory(s, mu, first, count, stream);
        gather_constant<<<blocks_for_each(r.count), kBlock, 0, stream>>>(count, r, out);
    }
}

// Range reduction: cos(2 pi t) depends only on the fraction of t, from -1/2 to 1/2. From 2^23 to
// 2^24 floats are 1 apart, so adding 1.5 * 2^23 rounds to the nearest integer, for |turns| <= 2^22.
// (Larger floats have no fraction but 1/2.) rintf would take a third instruction of the units
// below.
__device__ inline float fraction_of_turn(float turns) {
    constexpr float kRounding = 1.5F * 8388608;
    return turns - ((turns + kRounding) - kRounding);
}

// cos and sin of 2 pi * turns by the special function units. From -pi to pi the error of __cosf is
// at most 2^-21.19, that of __sinf 2^-21.41; outside, it grows with the argument.
__device__ inline void fast_wave(float turns, float* sine, float* cosine) {
    __sincosf(kTwoPi * fraction_of_turn(turns), sine, cosine);
}

// Idea: special function units (SFU) compute a sine or cosine in one instruction, which needs a
// small argument.
// Cost removed: the instructions of sincosf, which reduces any argument and sums a polynomial.
// Still limits it: the loads from constant memory, as before. It takes 61.3 ms; with chunks of half
// the size, whose samples are structures, 29.5 (beyond/coarsened.cuh); without constant memory,
// `shared_tile` takes 4.35.
__global__ void gather_hardware_trig(int count, Positions r, Sums out) {
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= r.count) return;
    const float x = r.x[n];
    const float y = r.y[n];
    const float z = r.z[n];
    float re = out.re[n];
    float im = out.im[n];
    for (int m = 0; m < count; ++m) {
        const float turns = constant_kx[m] * x + constant_ky[m] * y + constant_kz[m] * z;
        float sine, cosine;
        fast_wave(turns, &sine, &cosine);
        re += constant_mu_re[m] * cosine - constant_mu_im[m] * sine;
        im += constant_mu_im[m] * cosine + constant_mu_re[m] * sine;
    }
    out.re[n] = re;
    out.im[n] = im;
}

inline void launch_hardware_trig(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    cudaMemsetAsync(out.re, 0, r.count * sizeof(float), stream);
    cudaMemsetAsync(out.im, 0, r.count * sizeof(float), stream);
    for (int first = 0; first < s.count; first += kChunk) {
        const int count = s.count - first < kChunk ? s.count - first : kChunk;
        put_into_constant_memory(s, mu, first, count, stream);
        gather_hardware_trig<<<blocks_for_each(r.count), kBlock, 0, stream>>>(count, r, out);
    }
}

constexpr int kTile = kBlock;  // samples in shared memory: each thread loads one

// Idea: shared memory broadcasts, too: no bank conflict if all lanes read the same address. A
// sample is a float4 and a float, so that two loads replace five.
// Cost removed: the copies to constant memory, and a launch per chunk.
// Still limits it: the special function units, 70 % busy, and issue slots, 82 %. With a quarter of
// the loads (beyond/coarsened.cuh) it takes 4.17 ms in place of 4.35, with half of the phases,
// sines and multiply-adds (`mirrored`, beyond/runs.cuh) 1.97 ms.
__global__ void gather_shared(Samples s, Mu mu, Positions r, Sums out) {
    __shared__ float4 tile[kTile];  // kx, ky, kz, mu_re
    __shared__ float tile_mu_im[kTile];
    const int thread = static_cast<int>(threadIdx.x);
    const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const bool inside = n < r.count;
    const float x = inside ? r.x[n] : 0;
    const float y = inside ? r.y[n] : 0;
    const float z = inside ? r.z[n] : 0;
    float re = 0;
    float im = 0;
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
            float sine, cosine;
            fast_wave(sample.x * x + sample.y * y + sample.z * z, &sine, &cosine);
            re += sample.w * cosine - mu_im * sine;
            im += mu_im * cosine + sample.w * sine;
        }
        __syncthreads();  // all have used the tile
    }
    if (inside) {
        out.re[n] = re;
        out.im[n] = im;
    }
}

inline void launch_shared_tile(Samples s, Mu mu, Positions r, Sums out, cudaStream_t stream) {
    launch_compute_mu(s, mu, stream);
    gather_shared<<<blocks_for_each(r.count), kBlock, 0, stream>>>(s, mu, r, out);
}

}  // namespace day37
