// Day 14, beyond: reciprocal square roots on two pipes. An SM computes 16 of them per clock cycle
// on its special function units, and 128 multiply-adds on others. So some of the roots are computed
// by multiply-adds.
#pragma once

#include "../electrostatics.cuh"
#include "common/device/ptx.cuh"

namespace day14 {

// 1 / sqrt(s) by additions and multiplications, for normal s > 0; at most 1.7 * 2^-24 of itself off
// (measured for all floats from 1 to 4; the error is the same for each factor of 4).
//
// Half of the exponent's bits, negated, are those of the result: shifting s to the right by one
// halves its exponent, and the constant minus that is an approximation y whose error is at most 3.5
// %. The constant is also what makes errors in both directions equal. With e = 1 - s y^2, exactly,
//
//     1 / sqrt(s) = y / sqrt(1 - e) = y (1 + e (1/2 + 3/8 e + 5/16 e^2 + 35/128 e^3 + ...))
//
// where |e| <= 0.0696. The coefficients are nearly those of the series; they were fitted at Chebyshev
// nodes of this interval, so that four of them are enough for a float.
__device__ inline float rsqrt_by_fma(float s) {
    const float y = __uint_as_float(0x5f37642fu - (__float_as_uint(s) >> 1));
    const float e = fmaf(-s * y, y, 1.0f);
    float p = fmaf(0.273605376f, e, 0.313940912f);
    p = fmaf(p, e, 0.375001818f);
    p = fmaf(p, e, 0.499998301f);
    return fmaf(y * e, p, y);
}

constexpr int kColumn = 8;        // points of a thread, one above the other
constexpr int kMixedAtoms = 120;  // of a tile: a multiple of each kEvery

// Idea: one root in kEvery by multiply-adds, the others by the special function units, so that both
// work at the same time. With kEvery of 1,000 none. A thread has eight points along z, which have
// dx and dy in common.
// Cost removed: a part of the special functions. rsqrt.approx.ftz also takes less instructions than
// rsqrtf, which scales denormal numbers; s is never one.
// Still limits it: the special function units, 84 % busy without roots by multiply-adds, 87 % with
// one in eight. By arithmetic, such a root takes nine issue slots; with one in five, a pair needs
// 6.4 cycles of a warp's special functions, and 6.5 issue slots. But then neither is full (special
// functions 73 % busy, issue slots 72 %). 256^3 points and 4,000 atoms take 18.3 ms without such
// roots, 15.8 with one in eight, 17.3 with one in five and 17.5 with one in four.
template <int kEvery>
__global__ void potential_mixed_pipes(const Atom* atoms, std::size_t n, Grid grid, float* potential) {
    constexpr int kTogether = kEvery > kMixedAtoms ? 1 : kEvery;  // atoms of an unrolled round
    static_assert(kMixedAtoms % kTogether == 0, "a tile has whole rounds");
    __shared__ Atom tile[kMixedAtoms];
    const int x = static_cast<int>(blockIdx.x) * kBlockX + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z) * kColumn;
    const int thread = static_cast<int>(threadIdx.y) * kBlockX + static_cast<int>(threadIdx.x);
    float sums[kColumn] = {};
    for (std::size_t first = 0; first < n; first += kMixedAtoms) {
        // Beyond the last atom, charges of 0.
        const std::size_t own = first + static_cast<std::size_t>(thread);
        if (thread < kMixedAtoms) tile[thread] = own < n ? atoms[own] : Atom{0, 0, 0, 0};
        __syncthreads();  // the tile is complete
        const int count = static_cast<int>(n - first < kMixedAtoms ? n - first : kMixedAtoms);
        for (int i = 0; i < count; i += kTogether) {
#pragma unroll
            for (int a = 0; a < kTogether; ++a) {
                const Atom atom = tile[i + a];
                const float dx = grid.at(x) - atom.x;
                const float dy = grid.at(y) - atom.y;
                const float in_common = dx * dx + dy * dy + kSoftening;
#pragma unroll
                for (int k = 0; k < kColumn; ++k) {
                    const float dz = grid.at(z + k) - atom.z;
                    const float s = dz * dz + in_common;
                    // All indices are constants here, so this is no branch.
                    const bool by_fma = kTogether > 1 && (a * kColumn + k) % kEvery == 0;
                    sums[k] += atom.charge * (by_fma ? rsqrt_by_fma(s) : course::ptx::rsqrt_approx(s));
                }
            }
        }
        __syncthreads();  // the tile may be overwritten
    }
    if (x >= grid.nx || y >= grid.ny) return;
#pragma unroll
    for (int k = 0; k < kColumn; ++k) {
        if (z + k < grid.nz) potential[grid.index(x, y, z + k)] = sums[k];
    }
}

template <int kEvery>
void launch_mixed_pipes(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                        cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockX), course::blocks_for(grid.ny, kBlockY),
                      course::blocks_for(grid.nz, kColumn));
    const dim3 threads(kBlockX, kBlockY);
    potential_mixed_pipes<kEvery><<<blocks, threads, 0, stream>>>(atoms, n, grid, potential);
}

}  // namespace day14
