// Products of 16-bit matrices whose rows have any alignment, with wgmma. TMA loads only 16-byte
// aligned rows, so here threads load the operands into registers and store them to shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/wgmma_split.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace course::hopper {

// The alignment of the rows: the largest of 16, 8, 4 and 2 bytes such that every row begins and
// ends at a multiple of it. A piece of so many bytes is in range or out of range as a whole.
template <class T>
__device__ unsigned alignment_of_rows(const DeviceMatrix<const T>& matrix) {
    const auto bits = reinterpret_cast<std::uintptr_t>(matrix.data()) |
                      (matrix.leading_dimension() | matrix.cols()) * sizeof(T) | 16;
    return static_cast<unsigned>(bits & (~bits + 1));  // the lowest bit that is set
}

// A warpgroup copies an operand's tiles to shared memory through registers, one tile of 64 x 64
// elements for each step along K. `first` is the first row of A, or column of B, in the tiles. A
// row of a K-major tile runs along K; in an MN-major tile, each row belongs to one k. Adjacent
// lanes load adjacent pieces of a row.
template <class T, bool K_MAJOR>
class TileCopier {
  public:
    __device__ TileCopier(const DeviceMatrix<const T>& matrix, int first)
        : matrix_(matrix), first_(first), alignment_(alignment_of_rows(matrix)) {}

    // Issues the loads of the tile from `k` on. Out-of-range elements are zero-filled.
    __device__ void load(int k) {
        if (alignment_ == 16) {
            load_pieces<16>(k);
        } else if (alignment_ == 8) {
            load_pieces<8>(k);
        } else if (alignment_ == 4) {
            load_pieces<4>(k);
        } else {
            for_each_piece<4>(k, [&](int i, const T* from, int remaining, int) {
                const auto* const elements = reinterpret_cast<const unsigned short*>(from);
                words_[i * 2] = remaining > 0 ? elements[0] : 0;
                words_[i * 2 + 1] = remaining > 1 ? elements[1] : 0;
            });
        }
    }

    // Stores the loaded tile to shared memory as TMA would: rows of 128 bytes, swizzled, so that
    // the 16-byte chunk c of row r is at chunk c ^ (r % 8). The first use of the registers waits
    // for the loads.
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
    // Calls use(i, from, remaining, to) for each of the thread's pieces of BYTES bytes. `from` is
    // the piece's address in the matrix, `to` its first element in the tile in shared memory. From
    // the piece on, the row has `remaining` elements; none of them is in range if that is 0 or
    // less.
    template <int BYTES, class Use>
    __device__ void for_each_piece(int k, Use use) const {
        constexpr int kElements = BYTES / static_cast<int>(sizeof(T));
        constexpr int kRows = kWarpgroup * kElements / 64;  // that the warpgroup covers at a time
        int thread = static_cast<int>(threadIdx.x);
        // The compiler cannot move addresses that depend on `thread` out of the loop over steps.
        // There they would take too many registers.
        ptx::hold(thread);
        const int first_line = thread / (64 / kElements);
        const int element = thread % (64 / kElements) * kElements;
        const int row = (K_MAJOR ? first_ : k) + first_line;
        const int col = (K_MAJOR ? k : first_) + element;
        const int remaining = static_cast<int>(matrix_.cols()) - col;
        const int remaining_rows = static_cast<int>(matrix_.rows()) - row;
        const T* from = matrix_.data() + row * matrix_.leading_dimension() + col;
#pragma unroll
        for (int i = 0; i < 64 / kRows; ++i) {
            const int line = first_line + i * kRows;
            use(i, from, i * kRows < remaining_rows ? remaining : 0,
                line * 64 + (element / 8 ^ line % 8) * 8 + element % 8);
            from += kRows * matrix_.leading_dimension();
        }
    }

    template <int BYTES>
    __device__ void load_pieces(int k) {
        using Piece = Pack<unsigned, BYTES / 4>;
        for_each_piece<BYTES>(k, [&](int i, const T* from, int remaining, int) {
            const Piece piece =
                remaining > 0 ? Piece::load(reinterpret_cast<const unsigned*>(from)) : Piece{};
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
    // Two elements in each word, and half the words used; one in each if the alignment is 2 bytes.
    unsigned words_[64 * 64 / kWarpgroup];
};

// A block computes one tile of 64 x 64 results. With SPLITS > 1, the blocks of a cluster compute
// the same tile, each for its part of K. There are two stages: a double buffer.
template <class T, int SPLITS>
using UnalignedShape = TileShape<T, 64, 64, 2, 1, SPLITS>;

// The tiles of A and B of one step along K.
template <class T>
struct alignas(1024) StepTiles {
    T a[64 * 64];
    T b[64 * 64];
};

// Shared memory of a block: a double buffer in the main loop, the sums in the epilogue.
template <class S>
union UnalignedMemory {
    StepTiles<typename S::T> steps[2];
    RowsOfWarps<S> rows;
    Received<S> received;
};

constexpr int kBlocksPerSm = 4;

// Idea: threads load the operands into registers, in pieces as large as the alignment allows, and
// store them to shared memory in the layout that wgmma reads. No TMA, no producer warpgroup, no
// mbarriers: a double buffer, and the loads of the next step are in flight during the products of
// this one. While one block of an SM waits, three others work. Where tiles are few, the blocks of a
// cluster share K.
// Cost removed: the copies of unaligned operands to aligned rows: a kernel for each, and memory.
// Still limits it: the number of loads, and their latency in each step.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
__global__ void __launch_bounds__(kWarpgroup, kBlocksPerSm)
    multiply_unaligned_tile(const __grid_constant__ OperandsOf<typename S::T> operands,
                            const __grid_constant__ Batch<float> c, float alpha, float beta, unsigned down,
                            unsigned across) {
    using T = typename S::T;
    extern __shared__ __align__(1024) unsigned char bytes[];
    auto& memory = *reinterpret_cast<UnalignedMemory<S>*>(bytes);
    cudaGridDependencySynchronize();  // the kernel before has ended

    const unsigned number = blockIdx.x / S::SPLITS;
    const unsigned product = number / (down * across);
    const TileCoords coords{static_cast<int>(number / across % down) * S::BM,
                            static_cast<int>(number % across) * S::BN};
    const PartOfK<S> part(steps_of<S>(static_cast<int>(operands.k())), S::rank());
    const DeviceMatrix<const T> a = operands.a[product];
    const DeviceMatrix<const T> b = operands.b[product];
    TileCopier<T, A_K_MAJOR> copier_a(a, coords.row);
    TileCopier<T, B_K_MAJOR> copier_b(b, coords.col);
    const auto load = [&](int step) {
        copier_a.load((part.first + step) * S::BK);
        copier_b.load((part.first + step) * S::BK);
    };
    Sums<S> sums;
    clear(sums);
    load(0);
    for (int step = 0; step < part.count; ++step) {
        // Safe to overwrite: the products of step - 2 read these tiles, and all warps waited for
        // them before the barrier of step - 1. Those of step - 1 may still be in flight.
        StepTiles<T>& tiles = memory.steps[step % 2];
        copier_a.store(tiles.a);
        copier_b.store(tiles.b);
        ptx::wgmma_wait<0>();
        ptx::fence_proxy_async();  // makes this thread's stores visible to wgmma
        if (step + 1 < part.count) load(step + 1);
        __syncthreads();  // the tiles are complete
        const std::uint64_t at_a =
            A_K_MAJOR ? ptx::descriptor_k_major(tiles.a) : ptx::descriptor_mn_major(tiles.a, sizeof(tiles.a));
        const std::uint64_t at_b =
            B_K_MAJOR ? ptx::descriptor_k_major(tiles.b) : ptx::descriptor_mn_major(tiles.b, sizeof(tiles.b));
        ptx::wgmma_fence();
        // A wgmma takes 16 of K: 32 bytes of each K-major row, or 16 MN-major rows of 128 bytes.
#pragma unroll
        for (int i = 0; i < 4; ++i)
            ptx::wgmma<T, !B_K_MAJOR, !A_K_MAJOR>(sums, ptx::advanced(at_a, i * (A_K_MAJOR ? 32 : 2048)),
                                                  ptx::advanced(at_b, i * (B_K_MAJOR ? 32 : 2048)));
        ptx::wgmma_commit();
    }
    ptx::wgmma_wait<0>();
    const OutputOf<float> out = make_output(c[product], alpha, beta);
    Ring<S>::synchronise_cluster();  // the tiles of all blocks are safe to overwrite
    if constexpr (S::SPLITS > 1) {
        send_sums<S>(memory.received, sums);
        Ring<S>::synchronise_cluster();  // the sums have arrived
        store_own_sums<S>(out, coords, memory.received, sums);
    } else {
        store_in_rows<S>(memory.rows[threadIdx.x / 32], out, coords, sums);
    }
}

}  // namespace course::hopper
