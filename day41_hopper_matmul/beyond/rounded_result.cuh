// Day 41, beyond: C = A B with results of 16 bits, as the next layer of a network reads them. The
// sums stay in FP32 until the end, and each is rounded once.
//
//   version       how a warp stores 16 x 64 results           what is new
//   stored_pairs  16 stores of 4 bytes per lane               half the bytes of async_store
//   stmatrix      4 of stmatrix, which TMA stores as one box  whole rows of 128 bytes leave the SM
//
// Until C is stored, both are `async_store` of any_tile.cuh: the same ring, the same two roles. At
// 8192 x 8192 x 256 on an H200, stored_pairs takes 146 µs and stmatrix 70.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "beyond/clusters.cuh"
#include "common/device/cluster_launch.hpp"
#include "common/device/half_fragment.cuh"
#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_tile.cuh"
#include "hopper_matmul.cuh"

namespace day41 {

namespace hopper = course::hopper;

// C, of T.
template <class T>
struct RoundedOutput {
    DeviceMatrix<T> c;
    bool pairs;   // every element with an even column is 4-byte aligned
    bool chunks;  // every row is 16-byte aligned, so TMA can store it
};

template <class T>
__device__ bool inside(const RoundedOutput<T>& out, int row, int col) {
    return row < static_cast<int>(out.c.rows()) && col < static_cast<int>(out.c.cols());
}

// --- From registers ------------------------------------------------------------------------------

// Stores 64 x BN results of a warpgroup, two at a time. Lane 4 g + t holds columns 2 t and 2 t + 1
// of each eight columns, in rows g and g + 8. With floats, four lanes fill a sector of 32 bytes.
// With 16 bits they fill half of it: a store of the warp touches eight sectors for 128 bytes.
template <class S>
__device__ void store_pairs(const RoundedOutput<typename S::T>& out, hopper::TileCoords tile,
                            const hopper::Sums<S>& sums) {
    using T = typename S::T;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int i = 0; i < S::BN / 2; i += 2) {
        const int row = tile.row + warp * 16 + i / 2 % 2 * 8 + lane / 4;
        const int col = tile.col + i / 4 * 8 + lane % 4 * 2;
        const unsigned bits = course::pair<T>(sums[i], sums[i + 1]);
        course::Pack<T, 2> results;
        memcpy(&results, &bits, sizeof bits);
        if (out.pairs && inside(out, row, col + 1)) {
            results.store(&out.c(row, col));
        } else {
            if (inside(out, row, col)) out.c(row, col) = results.value[0];
            if (inside(out, row, col + 1)) out.c(row, col + 1) = results.value[1];
        }
    }
}

// --- Through shared memory -----------------------------------------------------------------------

// A warp stores its 16 rows in slices of 64 columns: rows of 128 bytes, a box of TMA. While TMA
// reads one slice, the warp fills the other.
constexpr int kRoundedColumns = 64;
template <class T>
using RoundedSlice = T[16 * kRoundedColumns];

// The place of the eight elements from column 8 * chunk on in row `row` of a slice, swizzled as TMA
// expects it. A row is 128 bytes, all 32 banks, so the eight rows of an 8 x 8 matrix have their
// chunks in eight different groups of four banks.
__device__ inline int swizzled(int row, int chunk) {
    return row * kRoundedColumns + (chunk ^ row % 8) * 8;
}

// Fills a slice with the results from column `first` of the tile on. One stmatrix stores four 8 x 8
// matrices, a lane's register of each being the pair that wgmma has left there. Matrix m is that
// of rows 8 (m % 2) and columns 8 (m / 2) on, and lane 8 m + i passes the address of its row i.
template <class S>
__device__ void fill_slice(RoundedSlice<typename S::T>& slice, int first, const hopper::Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int col = 0; col < kRoundedColumns; col += 16) {
        unsigned pairs[4];
#pragma unroll
        for (int matrix = 0; matrix < 4; ++matrix) {
            const int i = (first + col) / 2 + matrix * 2;
            pairs[matrix] = course::pair<typename S::T>(sums[i], sums[i + 1]);
        }
        ptx::stmatrix_x4(&slice[swizzled(lane % 16, col / 8 + lane / 16)], pairs);
    }
}

// Stores a slice by 16-byte stores: eight lanes have a row. Where C ends within 16 bytes, element
// by element.
template <class T>
__device__ void store_chunks(const RoundedSlice<T>& slice, const RoundedOutput<T>& out, int first_row,
                             int first_col) {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * 8; i += 32) {
        const auto results = course::Pack<T, 8>::load(&slice[swizzled(i / 8, i % 8)]);
        const int row = first_row + i / 8;
        const int col = first_col + i % 8 * 8;
        if (inside(out, row, col + 7)) {
            results.store(&out.c(row, col));
        } else {
#pragma unroll
            for (int element = 0; element < 8; ++element)
                if (inside(out, row, col + element)) out.c(row, col + element) = results.value[element];
        }
    }
}

// Stores a slice of a C with unaligned rows: adjacent lanes have adjacent elements.
template <class T>
__device__ void store_elements(const RoundedSlice<T>& slice, const RoundedOutput<T>& out, int first_row,
                               int first_col) {
    for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * kRoundedColumns; i += 32) {
        const int row = i / kRoundedColumns;
        const int col = i % kRoundedColumns;
        const T result = slice[swizzled(row, col / 8) + col % 8];
        if (inside(out, first_row + row, first_col + col)) out.c(first_row + row, first_col + col) = result;
    }
}

// Stores 64 x BN results of a warpgroup through the two slices of each warp. Of what is out of
// range, TMA drops only whole pieces of 16 bytes, eight results. If C ends within such a piece, the
// lanes store the last slice.
template <class S>
__device__ void store_by_stmatrix(const CUtensorMap& map, RoundedSlice<typename S::T> (&slices)[2],
                                  const RoundedOutput<typename S::T>& out, hopper::TileCoords tile,
                                  const hopper::Sums<S>& sums) {
    static_assert(S::BN / kRoundedColumns % 2 == 0,
                  "a tile's last slice and the next one's first would be the same");
    const bool first_lane = threadIdx.x % 32 == 0;
    const int columns = static_cast<int>(out.c.cols());
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 % 4 * 16;
#pragma unroll
    for (int first = 0; first < S::BN; first += kRoundedColumns) {
        RoundedSlice<typename S::T>& slice = slices[first / kRoundedColumns % 2];
        const int col = tile.col + first;
        if (first_lane) ptx::tma_store_wait_read<1>();
        __syncwarp();  // the slice is safe to overwrite
        fill_slice<S>(slice, first, sums);
        ptx::fence_proxy_async();
        __syncwarp();  // the slice is complete
        if (!out.chunks) {
            store_elements(slice, out, row, col);
        } else if (columns % 8 != 0 && col + kRoundedColumns > columns) {
            store_chunks(slice, out, row, col);
        } else if (first_lane) {
            ptx::tma_store(&map, col, row, slice);
        }
        // Without a TMA store, an empty group: the wait above assumes one group per slice.
        if (first_lane) ptx::tma_store_commit();
    }
}

// --- The kernel ----------------------------------------------------------------------------------

enum class RoundedStore { kPairs, kStmatrix };

template <class S>
struct RingAndRoundedSlices {
    hopper::Ring<S> ring;
    alignas(1024) RoundedSlice<typename S::T> slices[S::CONSUMERS * 4][2];
};

// kPairs. Idea: C is stored from registers, as in the core, but with two results in each.
// Cost removed: half the bytes of C.
// Still limits it: where K is short, stores (inspection: twice the sectors that their bytes fill).
// Each fills half of its sectors, and the other half follows two stores later.
//
// kStmatrix. Idea: the pairs of four matrices pass to shared memory by one instruction, and leave
// it by TMA, in rows of 128 bytes.
// Cost removed: the partly filled sectors, the addresses of 64 stores per thread, and the time that
// a warp waits for them.
// Still limits it: not profiled.
template <class S, RoundedStore kStore>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * kWarpgroup)
    rounded_result(const __grid_constant__ Maps maps, RoundedOutput<typename S::T> out, int depth,
                   RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, slices] = *reinterpret_cast<RingAndRoundedSlices<S>*>(memory);
    ring.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first_tile = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = hopper::steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;

    hopper::RingPosition<S> at;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first_tile; tile < tiles; tile += clusters)
                hopper::produce(ring, at, maps, hopper::coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();
    } else {
        S::take_registers();
        for (int tile = first_tile; tile < tiles; tile += clusters) {
            hopper::TileCoords coords = hopper::coords_of<S>(order, tile);
            coords.row += group * 64;
            hopper::Sums<S> sums;
            hopper::consume(ring, at, group, steps, sums);
            if constexpr (kStore == RoundedStore::kStmatrix) {
                const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
                store_by_stmatrix<S>(maps.c, slices[warp], out, coords, sums);
            } else {
                store_pairs<S>(out, coords, sums);
            }
        }
        ptx::tma_store_wait_read<0>();  // shared memory is freed when the block ends
    }
    if constexpr (S::CLUSTER > 1) ring.synchronise_cluster();
}

template <class S, RoundedStore kStore>
void launch_rounded_result(const DeviceMatrix<const typename S::T>& a,
                           const DeviceMatrix<const typename S::T>& b, const DeviceMatrix<typename S::T>& c,
                           cudaStream_t stream) {
    const RoundedOutput<typename S::T> out{
        .c = c,
        .pairs = c.leading_dimension() % 2 == 0 && course::is_aligned(c.data(), 4),
        .chunks = course::why_no_tensor_map(c).empty()};
    Maps maps = make_maps(a, b, S::BM, S::SHARE);
    if (out.chunks) maps.c = course::make_tensor_map(c, 16, kRoundedColumns);
    const RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBand);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(RingAndRoundedSlices<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(rounded_result<S, kStore>, course::blocks_of(order, S::CLUSTER), stream, maps, out,
              static_cast<int>(a.cols()), order);
}

}  // namespace day41
