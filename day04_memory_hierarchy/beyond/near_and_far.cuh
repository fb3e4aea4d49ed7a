// Day 4, beyond: how much the near memories deliver, and what decides which memory answers.
//
//   version         what is new                                         what limits it
//   again_l1        each SM reads its own bytes over and over           L1, L2 or DRAM, by size
//   again_small_l1  the same kernel, which prefers shared memory to L1  L1 for less, else L2
//   again_shared    the bytes are in shared memory                      shared memory
//
// Each kernel is followed by its launch.
//
//   ./course run day04 --only again_shared                 one version, verified and timed
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "memory_hierarchy.cuh"

namespace day04 {

// --- Near: the bandwidth of L1 and of shared memory ----------------------------------------------
//
// x has a piece of `quads` times 16 bytes for each SM. One block of 1,024 threads per SM adds up its
// piece `rounds` times. Each thread stores its own sum, modulo 2^32.
constexpr unsigned kPieceBlock = 1024;

// Idea: after the first round, a piece is in the nearest cache that holds it. With 1,024 threads
// that load 16 bytes each, 16 KB are in flight per SM, more than L1's latency needs.
// Cost removed: the way to L2, if L1 holds the piece.
// Limits it: the bandwidth of L1; of L2 for a larger piece, of DRAM when all pieces together are
// larger than L2.
__global__ void again(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums) {
    const uint4* const piece = x + std::size_t{blockIdx.x} * quads;
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock) {
            const uint4 quad = piece[i];
            sum += quad.x + quad.y + quad.z + quad.w;
        }
    }
    sums[blockIdx.x * kPieceBlock + threadIdx.x] = sum;
}

// The carveout is the part of an SM's 256 KB that is set aside for shared memory, in percent of the
// most that it can be. The kernel itself has no shared memory, so L1 gets as much as possible.
inline void launch_again_l1(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                            cudaStream_t stream) {
    CUDA_CHECK(cudaFuncSetAttribute(again, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxL1));
    again<<<course::multiprocessors(), kPieceBlock, 0, stream>>>(x, quads, rounds, sums);
}

// Idea: the same kernel with the largest carveout, as if the kernel before or beside it needed much
// shared memory.
// Cost added: L1 has only what is left.
// Limits it: L2, for pieces that the smaller L1 does not hold.
inline void launch_again_small_l1(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                                  cudaStream_t stream) {
    CUDA_CHECK(cudaFuncSetAttribute(again, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
    again<<<course::multiprocessors(), kPieceBlock, 0, stream>>>(x, quads, rounds, sums);
}

// Idea: the block copies its piece to shared memory, then reads it there.
// Cost removed: looking for the line, and any doubt about what the cache keeps.
// Limits it: the bandwidth of shared memory, and its size: 227 KB of a block.
__global__ void again_shared(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums) {
    extern __shared__ uint4 copy[];  // quads
    const uint4* const piece = x + std::size_t{blockIdx.x} * quads;
    for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock)
        copy[i] = piece[i];
    __syncthreads();
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock) {
            const uint4 quad = copy[i];
            sum += quad.x + quad.y + quad.z + quad.w;
        }
    }
    sums[blockIdx.x * kPieceBlock + threadIdx.x] = sum;
}

// More than 48 KB of shared memory have to be allowed first; course::launch does it.
inline void launch_again_shared(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                                cudaStream_t stream) {
    course::launch(again_shared, {course::multiprocessors(), kPieceBlock, quads * sizeof(uint4), stream}, x,
                   quads, rounds, sums);
}

}  // namespace day04
