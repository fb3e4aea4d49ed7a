// Products of 16-bit matrices, rows of any alignment, with wgmma: threads load what TMA cannot.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/factors.hpp"
#include "common/device/ptx.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/wgmma_split.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace course::hopper {

constexpr int kGatherers = 2;                            // producer warpgroups
constexpr int kGatherThreads = kGatherers * kWarpgroup;  // of a block
constexpr int kInChunk = 8;                              // elements in 16 bytes

// Sixteen bytes of a row on their way: two aligned pieces, and where in them the bytes begin.
struct Chunk {
    unsigned words[8];
    unsigned begin;  // bytes, even
    int valid;       // elements in range, of eight
};

// Loads elements [col, col + 8) of a row, wherever it begins: the two aligned pieces of 16 bytes
// that hold them. Where these reach beyond the matrix, at its ends, element by element.
template <class T>
__device__ Chunk load_chunk(const DeviceMatrix<const T>& matrix, int row, int col) {
    Chunk chunk{};
    const int in_row = static_cast<int>(matrix.cols()) - col;
    if (row >= static_cast<int>(matrix.rows()) || in_row <= 0) return chunk;
    chunk.valid = min(kInChunk, in_row);
    const T* const first = &matrix(row, col);
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t aligned = address / 16 * 16;
    chunk.begin = static_cast<unsigned>(address - aligned);
    const unsigned pieces = chunk.begin + chunk.valid * sizeof(T) > 16 ? 2 : 1;
    const auto begin = reinterpret_cast<std::uintptr_t>(matrix.data());
    const auto end = reinterpret_cast<std::uintptr_t>(
        matrix.data() + (matrix.rows() - 1) * matrix.leading_dimension() + matrix.cols());
    if (aligned >= begin && aligned + 16 * pieces <= end) {
        const auto* const at = reinterpret_cast<const uint4*>(aligned);
        const uint4 low = at[0];
        uint4 high = {};
        if (pieces == 2) high = at[1];
        chunk.words[0] = low.x, chunk.words[1] = low.y, chunk.words[2] = low.z, chunk.words[3] = low.w;
        chunk.words[4] = high.x, chunk.words[5] = high.y, chunk.words[6] = high.z, chunk.words[7] = high.w;
    } else {
        chunk.begin = 0;
#pragma unroll
        for (int i = 0; i < kInChunk; ++i) {
            if (i >= chunk.valid) continue;
            const unsigned bits = reinterpret_cast<const unsigned short*>(first)[i];
            chunk.words[i / 2] |= bits << i % 2 * 16;
        }
    }
    return chunk;
}

// The eight elements: shifted by two words, one word and half a word, as `begin` says. What is out
// of range becomes zero.
__device__ inline uint4 aligned_chunk(Chunk chunk) {
    unsigned(&words)[8] = chunk.words;
#pragma unroll
    for (int i = 0; i < 6; ++i)
        words[i] = chunk.begin & 8 ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < 5; ++i)
        words[i] = chunk.begin & 4 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        words[i] = __funnelshift_r(words[i], words[i + 1], (chunk.begin & 2) * 8);
        if (chunk.valid < 2 * i + 2) words[i] &= chunk.valid > 2 * i ? 0xffffu : 0u;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// The largest of 16, 8, 4 and 2 bytes at multiples of which every row begins and ends.
template <class T>
__device__ unsigned alignment_of_rows(const DeviceMatrix<const T>& matrix) {
    const auto all = reinterpret_cast<std::uintptr_t>(matrix.data()) |
                     (matrix.leading_dimension() | matrix.cols()) * sizeof(T) | 16;
    return static_cast<unsigned>(all & (~all + 1));
}

// Issues a copy of BYTES; zeros instead, if it is not `valid`.
template <int BYTES>
__device__ void copy_piece(void* to, const void* from, bool valid) {
    if constexpr (BYTES == 16) ptx::cp_async_16(to, from, valid ? 16 : 0);
    if constexpr (BYTES == 8) ptx::cp_async_8(to, from, valid);
    if constexpr (BYTES == 4) ptx::cp_async_4(to, from, valid);
}

// One producer thread's part of a tile of a factor: LINES rows or columns of it from `first` on, 64
// of K. In shared memory the tile is as TMA would write it: rows of 128 bytes, chunk c of row r at
// c ^ (r % 8). A K-major tile has LINES rows, an MN-major one 64 rows for each 64 columns.
template <class T, int LINES, bool K_MAJOR>
struct GatheredTile {
    static constexpr int CHUNKS = LINES * 8 / kGatherThreads;
    const DeviceMatrix<const T>& matrix;
    int first;
    int k;
    T* tile;
    int thread;

    // Calls use(i, row, col, to) for each chunk of the thread, which comes from (row, col).
    template <class Use>
    __device__ void for_each_chunk(Use use) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int number = thread + i * kGatherThreads;
            const int line = number / 8;
            const int along = number % 8 * kInChunk;
            T* const to = tile + line * 64 + (number % 8 ^ line % 8) * kInChunk;
            if constexpr (K_MAJOR) {
                use(i, first + line, k + along, to);
            } else {
                use(i, k + line % 64, first + line / 64 * 64 + along, to);
            }
        }
    }

    // Asynchronous copies. What is out of range becomes zero.
    template <int BYTES>
    __device__ void copy() const {
        constexpr int kElements = BYTES / static_cast<int>(sizeof(T));
        for_each_chunk([&](int, int row, int col, T* to) {
#pragma unroll
            for (int piece = 0; piece < kInChunk; piece += kElements) {
                const bool valid =
                    row < static_cast<int>(matrix.rows()) && col + piece < static_cast<int>(matrix.cols());
                copy_piece<BYTES>(to + piece, valid ? &matrix(row, col + piece) : matrix.data(), valid);
            }
        });
    }

    // For rows that begin at odd elements: cp.async has no copies of 2 bytes.
    __device__ void load_and_shift() const {
        Chunk chunks[CHUNKS];
        for_each_chunk([&](int i, int row, int col, T*) { chunks[i] = load_chunk(matrix, row, col); });
        for_each_chunk(
            [&](int i, int, int, T* to) { *reinterpret_cast<uint4*>(to) = aligned_chunk(chunks[i]); });
    }

    __device__ void gather(unsigned alignment) const {
        if (alignment == 16) {
            copy<16>();
        } else if (alignment == 8) {
            copy<8>();
        } else if (alignment == 4) {
            copy<4>();
        } else {
            load_and_shift();
        }
    }
};

// Idea: two producer warpgroups load what TMA cannot, in the layout that wgmma reads: by
// asynchronous copies of 16, 8 or 4 bytes, some steps ahead. Rows that begin at odd elements are
// loaded in aligned pieces of 16 bytes and shifted into place in registers. Where tiles are few,
// the blocks of a cluster share K.
// Cost removed: copies of both matrices to aligned rows, two kernels more and memory for them.
// Still limits it: an instruction for 4 or 8 bytes; for odd rows two loads and about 20
// instructions for 16 bytes, and nothing in flight meanwhile.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
__global__ void __launch_bounds__(S::CONSUMERS* kWarpgroup + kGatherThreads, S::BM == 64 ? 2 : 1)
    multiply_gathered(const __grid_constant__ FactorsOf<typename S::T> factors,
                      const __grid_constant__ Batch<float> c, float alpha, float beta, unsigned down,
                      unsigned across) {
    using T = typename S::T;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& ring = *reinterpret_cast<Ring<S>*>(memory);
    auto& received = *reinterpret_cast<Received<S>*>(memory);  // when the stages are no longer needed
    static_assert(sizeof(received) <= sizeof(ring.a) + sizeof(ring.b), "the barriers stay intact");
    // The consumers are between the producers: the helpers expect them from thread 128 on.
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < S::STAGES; ++stage) {
            ptx::mbarrier_init(&ring.full[stage], kGatherThreads / 32);  // a producer's warps arrive
            ptx::mbarrier_init(&ring.empty[stage], S::CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    ring.synchronise_cluster();
    cudaGridDependencySynchronize();  // the kernel before has ended

    const unsigned number = blockIdx.x / S::SPLITS;
    const unsigned product = number / (down * across);
    const int row = static_cast<int>(number / across % down) * S::BM;
    const int col = static_cast<int>(number % across) * S::BN;
    const PartOfK<S> part(steps_of<S>(static_cast<int>(factors.k())), S::SPLITS == 1 ? 0 : S::rank());
    RingPosition<S> at;
    if (group < 0 || group == S::CONSUMERS) {
        const int thread = group < 0 ? static_cast<int>(threadIdx.x)
                                     : static_cast<int>(threadIdx.x) - S::CONSUMERS * kWarpgroup;
        const DeviceMatrix<const T> a = factors.a[product];
        const DeviceMatrix<const T> b = factors.b[product];
        const unsigned alignment_a = alignment_of_rows(a);
        const unsigned alignment_b = alignment_of_rows(b);
        // A stage is full when its copies have arrived, which is waited for kAhead steps later. The
        // consumers are done with a stage one step late: that is why kAhead is not larger.
        constexpr int kAhead = S::STAGES - 2;
        const auto announce = [&](int stage) {
            ptx::fence_proxy_async();  // wgmma must see it
            __syncwarp();
            if (thread % 32 == 0) ptx::mbarrier_arrive(&ring.full[stage]);
        };
        for (int step = 0; step < part.count; ++step, at.advance()) {
            ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
            const int k = (part.first + step) * S::BK;
            GatheredTile<T, S::BM, A_K_MAJOR>{a, row, k, ring.a[at.stage], thread}.gather(alignment_a);
            GatheredTile<T, S::BN, B_K_MAJOR>{b, col, k, ring.b[at.stage][0], thread}.gather(alignment_b);
            ptx::cp_async_commit();
            if (step < kAhead) continue;
            ptx::cp_async_wait<kAhead>();
            announce((at.stage + 2) % S::STAGES);  // kAhead steps ago
        }
        ptx::cp_async_wait<0>();
        for (int step = max(part.count - kAhead, 0); step < part.count; ++step)
            announce(step % S::STAGES);
        if constexpr (S::SPLITS > 1) {
            ring.synchronise_cluster();
            ring.synchronise_cluster();
        }
        return;
    }

    Sums<S> sums;
    clear(sums);
    int previous = -1;
    for (int step = 0; step < part.count; ++step, at.advance()) {
        ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
        const T* const rows = ring.a[at.stage] + group * 64 * S::BK;
        const std::uint64_t a =
            A_K_MAJOR ? ptx::descriptor_k_major(rows) : ptx::descriptor_mn_major(rows, 8192);
        const std::uint64_t b = B_K_MAJOR ? ptx::descriptor_k_major(ring.b[at.stage])
                                          : ptx::descriptor_mn_major(ring.b[at.stage], 8192);
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i)
            ptx::wgmma<T, !B_K_MAJOR, !A_K_MAJOR>(sums, ptx::advanced(a, i * (A_K_MAJOR ? 32 : 2048)),
                                                  ptx::advanced(b, i * (B_K_MAJOR ? 32 : 2048)));
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
        if (previous >= 0) ring.release_stage(previous);
        previous = at.stage;
    }
    ptx::wgmma_wait<0>();
    if (previous >= 0) ring.release_stage(previous);
    const OutputOf<float> out = make_output(c[product], alpha, beta);
    const TileCoords coords{row + group * 64, col};
    if constexpr (S::SPLITS > 1) {
        ring.synchronise_cluster();  // all blocks are done with their stages
        send_sums<S>(received, sums);
        ring.synchronise_cluster();  // the sums have arrived
        store_own_sums<S>(out, coords, received, sums);
    } else {
        store_from_registers<S>(out, coords, sums);
    }
}

}  // namespace course::hopper
