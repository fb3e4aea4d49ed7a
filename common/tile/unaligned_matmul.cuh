// Products of 16-bit matrices, rows of any alignment, with wgmma: threads load what TMA cannot.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/factors.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/wgmma_split.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace course::hopper {

// The largest of 16, 8, 4 and 2 bytes at multiples of which every row begins and ends.
template <class T>
__device__ unsigned alignment_of_rows(const DeviceMatrix<const T>& matrix) {
    const auto all = reinterpret_cast<std::uintptr_t>(matrix.data()) |
                     (matrix.leading_dimension() | matrix.cols()) * sizeof(T) | 16;
    return static_cast<unsigned>(all & (~all + 1));
}

// Loads tiles of a factor into the registers of a warpgroup, one for each step of 64 along K, and
// writes them to shared memory. They are 64 rows of A or columns of B, from `first` on. The rows of
// a K-major tile lie along K, those of an MN-major one across it. Neighbouring lanes load
// neighbours of a row.
template <class T, bool K_MAJOR>
class Gatherer {
  public:
    __device__ Gatherer(const DeviceMatrix<const T>& matrix, int first)
        : matrix_(matrix), first_(first), alignment_(alignment_of_rows(matrix)) {}

    // Issues the loads of the tile from `k` on. What is out of range becomes zero.
    __device__ void load(int k) {
        if (alignment_ == 16) {
            load_pieces<16>(k);
        } else if (alignment_ == 8) {
            load_pieces<8>(k);
        } else if (alignment_ == 4) {
            load_pieces<4>(k);
        } else {
            for_each_piece<4>(k, [&](int i, const T* from, int in_row, int) {
                const auto* const bits = reinterpret_cast<const unsigned short*>(from);
                words_[i * 2] = in_row > 0 ? bits[0] : 0;
                words_[i * 2 + 1] = in_row > 1 ? bits[1] : 0;
            });
        }
    }

    // Waits for them, and writes the tile to shared memory as TMA would: rows of 128 bytes, chunk c
    // of row r at c ^ (r % 8).
    __device__ void store(T* tile) const {
        if (alignment_ == 16) {
            store_pieces<16>(tile);
        } else if (alignment_ == 8) {
            store_pieces<8>(tile);
        } else if (alignment_ == 4) {
            store_pieces<4>(tile);
        } else {
            for_each_piece<4>(0, [&](int i, const T*, int, int to) {
                *reinterpret_cast<unsigned*>(tile + to) = words_[i * 2] | words_[i * 2 + 1] << 16;
            });
        }
    }

  private:
    // Calls use(i, from, in_row, to) for each of the thread's pieces of BYTES: its place in the
    // matrix, how many elements the row has from there on, and its place in shared memory.
    template <int BYTES, class Use>
    __device__ void for_each_piece(int k, Use use) const {
        constexpr int kElements = BYTES / static_cast<int>(sizeof(T));
        constexpr int kRows = kWarpgroup * kElements / 64;  // at a time
        int thread = static_cast<int>(threadIdx.x);
        ptx::hold(thread);  // addresses are computed in each step: registers do not hold them all
        const int above = thread / (64 / kElements);
        const int element = thread % (64 / kElements) * kElements;
        const int row = (K_MAJOR ? first_ : k) + above;
        const int col = (K_MAJOR ? k : first_) + element;
        const int in_row = static_cast<int>(matrix_.cols()) - col;
        const int rows = static_cast<int>(matrix_.rows()) - row;
        const T* from = matrix_.data() + row * matrix_.leading_dimension() + col;
#pragma unroll
        for (int i = 0; i < 64 / kRows; ++i) {
            const int line = above + i * kRows;
            use(i, from, i * kRows < rows ? in_row : 0,
                line * 64 + (element / 8 ^ line % 8) * 8 + element % 8);
            from += kRows * matrix_.leading_dimension();
        }
    }

    template <int BYTES>
    __device__ void load_pieces(int k) {
        using Piece = Pack<unsigned, BYTES / 4>;
        for_each_piece<BYTES>(k, [&](int i, const T* from, int in_row, int) {
            const Piece piece = in_row > 0 ? Piece::load(reinterpret_cast<const unsigned*>(from)) : Piece{};
#pragma unroll
            for (int word = 0; word < BYTES / 4; ++word)
                words_[i * BYTES / 4 + word] = piece.value[word];
        });
    }

    template <int BYTES>
    __device__ void store_pieces(T* tile) const {
        for_each_piece<BYTES>(0, [&](int i, const T*, int, int to) {
            Pack<unsigned, BYTES / 4> piece;
#pragma unroll
            for (int word = 0; word < BYTES / 4; ++word)
                piece.value[word] = words_[i * BYTES / 4 + word];
            piece.store(reinterpret_cast<unsigned*>(tile + to));
        });
    }

    const DeviceMatrix<const T>& matrix_;
    int first_;
    unsigned alignment_;
    unsigned words_[64 * 64 / kWarpgroup];  // two elements in each, or one where rows begin at odd ones
};

// A block computes 64 x 64 results; SPLITS blocks share them, each with its part of K.
template <class T, int SPLITS>
using GatheredShape = TileShape<T, 64, 64, 2, 1, SPLITS>;

// The factors of one step.
template <class T>
struct alignas(1024) GatheredStep {
    T a[64 * 64];
    T b[64 * 64];
};

// Shared memory of a block. When no step needs it any longer, it holds sums.
template <class S>
union GatheredMemory {
    GatheredStep<typename S::T> steps[2];
    RowsOfWarps<S> rows;
    Received<S> received;
};

constexpr int kGatheringBlocks = 4;  // of an SM

// Idea: threads load the factors into registers, an element at a time if rows are odd, and write
// them to shared memory as wgmma reads them. No TMA, no producer, no ring: while one block of an SM
// waits, three others work. Where tiles are few, the blocks of a cluster share K.
// Cost removed: copies of both matrices to aligned rows, two kernels more and memory for them.
// Still limits it: the number of loads, and their latency in each step.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
__global__ void __launch_bounds__(kWarpgroup, kGatheringBlocks)
    multiply_gathered(const __grid_constant__ FactorsOf<typename S::T> factors,
                      const __grid_constant__ Batch<float> c, float alpha, float beta, unsigned down,
                      unsigned across) {
    using T = typename S::T;
    extern __shared__ __align__(1024) unsigned char bytes[];
    auto& memory = *reinterpret_cast<GatheredMemory<S>*>(bytes);
    cudaGridDependencySynchronize();  // the kernel before has ended

    const unsigned number = blockIdx.x / S::SPLITS;
    const unsigned product = number / (down * across);
    const TileCoords coords{static_cast<int>(number / across % down) * S::BM,
                            static_cast<int>(number % across) * S::BN};
    const PartOfK<S> part(steps_of<S>(static_cast<int>(factors.k())), S::rank());
    const DeviceMatrix<const T> a = factors.a[product];
    const DeviceMatrix<const T> b = factors.b[product];
    Gatherer<T, A_K_MAJOR> gatherer_a(a, coords.row);
    Gatherer<T, B_K_MAJOR> gatherer_b(b, coords.col);
    const auto load = [&](int step) {
        gatherer_a.load((part.first + step) * S::BK);
        gatherer_b.load((part.first + step) * S::BK);
    };
    Sums<S> sums;
    clear(sums);
    load(0);
    for (int step = 0; step < part.count; ++step) {
        // The products of two steps ago are done: all have waited for them before the last barrier.
        GatheredStep<T>& tile = memory.steps[step % 2];
        gatherer_a.store(tile.a);
        gatherer_b.store(tile.b);
        ptx::wgmma_wait<0>();
        ptx::fence_proxy_async();  // wgmma must see the tile
        if (step + 1 < part.count) load(step + 1);
        __syncthreads();  // the tile is complete
        const std::uint64_t at_a =
            A_K_MAJOR ? ptx::descriptor_k_major(tile.a) : ptx::descriptor_mn_major(tile.a, sizeof(tile.a));
        const std::uint64_t at_b =
            B_K_MAJOR ? ptx::descriptor_k_major(tile.b) : ptx::descriptor_mn_major(tile.b, sizeof(tile.b));
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i)
            ptx::wgmma<T, !B_K_MAJOR, !A_K_MAJOR>(sums, ptx::advanced(at_a, i * (A_K_MAJOR ? 32 : 2048)),
                                                  ptx::advanced(at_b, i * (B_K_MAJOR ? 32 : 2048)));
        ptx::wgmma_commit();
    }
    ptx::wgmma_wait<0>();
    const OutputOf<float> out = make_output(c[product], alpha, beta);
    Ring<S>::synchronise_cluster();  // all are done with the steps
    if constexpr (S::SPLITS > 1) {
        send_sums<S>(memory.received, sums);
        Ring<S>::synchronise_cluster();  // the sums have arrived
        store_own_sums<S>(out, coords, memory.received, sums);
    } else {
        store_in_rows<S>(memory.rows[threadIdx.x / 32], out, coords, sums);
    }
}

}  // namespace course::hopper
