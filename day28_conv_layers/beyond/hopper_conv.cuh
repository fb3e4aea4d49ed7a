// Day 28, beyond: implicit GEMM on Hopper. TMA makes the tiles of columns, wgmma multiplies them.
//
//   y (NPQ x K) = columns (NPQ x RSC) times w^T (RSC x K)
//
// Tensors and product are those of tensor_cores.cuh, BF16 only. Day 41 builds the ring of stages,
// the producer and the consumers step by step.
//
// TMA supports convolutions. In its im2col mode, one instruction loads a column of pixels. The
// tensor map of x has a *bounding box*: the places in an image at which the first element of the
// filter can lie. It starts at (-padding, -padding), and its step is the stride. A load starts at
// one of these places and continues row by row and image by image. For each place it reads the
// pixel that is r rows below and s columns to the right. The padding is out of range, so it is
// zero-filled.
//
//   0 1 2 3 . .      . . . . . .     An image of 4 x 4 with padding 1, and a filter of 3 x 3.
//   4 5 6 7 . .      . . . . . .     Left: the bounding box, 16 places, 0 to f.
//   8 9 a b . .      . 0 1 2 3 .     Right: what a load of all of them reads for (r, s) = (2, 1).
//   c d e f . .      . 4 5 6 7 .     Places c to f read zeros, below the image.
//   . . . . . .      . 8 9 a b .
//   . . . . . .      . c d e f .
//
// Only for a course_hopper_library.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/cluster_launch.hpp"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/wgmma_tile.cuh"
#include "layer.cuh"

namespace day28 {

namespace hopper = course::hopper;
namespace ptx = course::ptx;
using hopper::kWarpgroup;  // 128 threads: the four warps that issue a wgmma together

// BM pixels x BN filters per block. A consumer warpgroup has 64 of the pixels and all filters; one
// more warp is the producer. BLOCKS of them fit on an SM, so that while one stores its results, the
// other multiplies.
template <int BM_, int BN_, int STAGES_, int BLOCKS_>
struct HopperTile {
    static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int BK = 64;  // channels of a stage: rows of 128 bytes, as the swizzle needs
    static constexpr int CONSUMERS = BM / 64;
    static constexpr int THREADS = CONSUMERS * kWarpgroup + 32;
    static constexpr int SLICES = BN / 64;  // of the results of a warp, 16 pixels x 64 filters each
    static_assert(BN % 64 == 0);
};

struct ConvMaps {
    CUtensorMap x;  // columns of BM pixels x 64 channels
    CUtensorMap w;  // BN filters x 64 channels of the element (r, s), whose number is the third extent
    CUtensorMap y;  // 16 pixels x 64 filters
};

// In shared memory. The destinations of TMA are 1024-byte aligned, because the swizzle pattern
// repeats after 1024 bytes.
template <class S>
struct alignas(1024) ConvRing {
    __nv_bfloat16 pixels[S::STAGES][S::BM * S::BK];
    __nv_bfloat16 filters[S::STAGES][S::BN * S::BK];
    __nv_bfloat16 results[S::CONSUMERS * 4][S::SLICES][16 * 64];
    ptx::MBarrier full[S::STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[S::STAGES];  // ... when all consumers are done with the stage
};

// The producer, one thread: loads all stages of a tile. A stage is 64 channels under one element of
// the filter. Channels beyond C are zero-filled, in both operands.
template <class S>
__device__ void produce(ConvRing<S>& ring, hopper::RingPosition<S>& at, const ConvMaps& maps,
                        const Shape& shape, int first_pixel, int first_k) {
    const int image = first_pixel / shape.plane();
    const int top = first_pixel % shape.plane() / shape.q() * shape.stride - shape.padding;
    const int left = first_pixel % shape.q() * shape.stride - shape.padding;
    for (int r = 0; r < shape.r; ++r) {
        for (int s = 0; s < shape.s; ++s) {
            for (int c = 0; c < shape.c; c += S::BK, at.advance()) {
                ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
                ptx::MBarrier* const full = &ring.full[at.stage];
                ptx::mbarrier_arrive_expect(full, sizeof ring.pixels[0] + sizeof ring.filters[0]);
                ptx::tma_load_im2col(ring.pixels[at.stage], &maps.x, c, left, top, image,
                                     static_cast<std::uint16_t>(s), static_cast<std::uint16_t>(r), full);
                ptx::tma_load(ring.filters[at.stage], &maps.w, c, first_k, r * shape.s + s, 0, full);
            }
        }
    }
}

// A consumer warpgroup: the sums of its 64 pixels of a tile. Both operands are K-major, that is, a
// row is 64 channels. One wgmma takes 16 of them.
template <class S>
__device__ void consume(ConvRing<S>& ring, hopper::RingPosition<S>& at, int group, int steps,
                        float (&sums)[S::BN / 2]) {
    const auto release = [&ring](int stage) {
        if (threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(&ring.empty[stage]);
    };
    hopper::clear(sums);
    int previous = -1;
    for (int step = 0; step < steps; ++step, at.advance()) {
        ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
        const std::uint64_t pixels = ptx::descriptor_k_major(ring.pixels[at.stage] + group * 64 * S::BK);
        const std::uint64_t filters = ptx::descriptor_k_major(ring.filters[at.stage]);
        ptx::wgmma_fence();
#pragma unroll
        for (int c = 0; c < S::BK; c += 16)
            ptx::wgmma<__nv_bfloat16, false>(sums, ptx::advanced(pixels, c * 2),
                                             ptx::advanced(filters, c * 2));
        ptx::wgmma_commit();
        // The MMAs of the previous stage are complete, those of this one are in flight.
        ptx::wgmma_wait<1>();
        if (previous >= 0) release(previous);
        previous = at.stage;
    }
    ptx::wgmma_wait<0>();
    release(previous);
}

__device__ inline unsigned bits_of(__nv_bfloat162 pair) {
    unsigned bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

// Stores 16 x BN sums of a warp through shared memory. stmatrix writes 16 x 16 of them at a time:
// the 16-byte chunk c of row i goes to c ^ (i % 8), as in TMA's swizzle. TMA drops out-of-range
// elements.
template <class S>
__device__ void store_through_tma(__nv_bfloat16 (&slices)[S::SLICES][16 * 64], const CUtensorMap& map,
                                  int pixel, int first_k, const float (&sums)[S::BN / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = lane % 16;
    if (lane == 0) ptx::tma_store_wait_read<0>();  // TMA has read the previous tile's slices
    __syncwarp();
#pragma unroll
    for (int slice = 0; slice < S::SLICES; ++slice) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            unsigned pairs[4];  // of rows g and g + 8, of both eights of columns
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* const two = &sums[slice * 32 + part * 8 + i * 2];
                pairs[i] = bits_of(__floats2bfloat162_rn(two[0], two[1]));
            }
            const int chunk = (part * 2 + lane / 16) ^ (row % 8);
            ptx::stmatrix_x4(&slices[slice][row * 64 + chunk * 8], pairs);
        }
    }
    ptx::fence_proxy_async();
    __syncwarp();  // the slices are complete
    if (lane == 0) {
        for (int slice = 0; slice < S::SLICES; ++slice)
            ptx::tma_store(&map, first_k + slice * 64, pixel, slices[slice]);
        ptx::tma_store_commit();
    }
}

// The same from registers, for any K. Lane 4 g + t has columns 2 t and 2 t + 1 of each eight, in
// rows g and g + 8.
template <class S>
__device__ void store_from_registers(__nv_bfloat16* y, const Shape& shape, int pixel, int first_k,
                                     const float (&sums)[S::BN / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int pixels = shape.n * shape.plane();
#pragma unroll
    for (int i = 0; i < S::BN / 2; ++i) {
        const int row = pixel + lane / 4 + i / 2 % 2 * 8;
        const int k = first_k + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < pixels && k < shape.k)
            y[static_cast<std::ptrdiff_t>(row) * shape.k + k] = __float2bfloat16(sums[i]);
    }
}

// Idea: TMA makes the tile of columns. One instruction per stage replaces the addresses, the
// comparisons with the borders and the copies of all threads. wgmma reads both operands from shared
// memory, and a block computes tile after tile.
// Cost removed: the instructions of the copies, ldmatrix, and their registers.
// Still limits it: probably the traffic from L2 and of shared memory. Each pixel is loaded nine
// times, once for each element of a 3 x 3 filter.
//
// tiles: of pixels and filters, filters first, so that blocks that run at the same time share
// pixels. through_tma: K is a multiple of 8, and y is 16-byte aligned.
template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    conv_tma_wgmma(const __grid_constant__ ConvMaps maps, __nv_bfloat16* y, Shape shape, int tiles,
                   bool through_tma) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& ring = *reinterpret_cast<ConvRing<S>*>(memory);
    if (threadIdx.x == 0) {
        ptx::prefetch(&maps.x);
        ptx::prefetch(&maps.w);
        for (int stage = 0; stage < S::STAGES; ++stage) {
            ptx::mbarrier_init(&ring.full[stage], 1);
            ptx::mbarrier_init(&ring.empty[stage], S::CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();

    const int filter_tiles = (shape.k + S::BN - 1) / S::BN;
    const int steps = shape.r * shape.s * ((shape.c + S::BK - 1) / S::BK);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
    hopper::RingPosition<S> at;
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        const int first_pixel = tile / filter_tiles * S::BM;
        const int first_k = tile % filter_tiles * S::BN;
        if (group == S::CONSUMERS) {
            if (threadIdx.x % 32 == 0) produce(ring, at, maps, shape, first_pixel, first_k);
            continue;
        }
        float sums[S::BN / 2];
        consume(ring, at, group, steps, sums);
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int pixel = first_pixel + warp * 16;
        if (through_tma) {
            store_through_tma<S>(ring.results[warp], maps.y, pixel, first_k, sums);
        } else {
            store_from_registers<S>(y, shape, pixel, first_k, sums);
        }
    }
    // Shared memory is freed when the block ends: TMA must have read it.
    ptx::tma_store_wait_read<0>();
}

// As many blocks as can be resident at a time, with the tensor maps of all three tensors.
template <class S>
void launch_conv_tma_wgmma(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y,
                           const Shape& shape, cudaStream_t stream) {
    const std::size_t channels = shape.c;
    const std::size_t pixels = std::size_t{1} * shape.n * shape.plane();
    const std::size_t elements = std::size_t{1} * shape.r * shape.s;
    const std::size_t filters = shape.k;
    const bool through_tma = shape.k % 8 == 0 && course::is_aligned(y, 16);

    ConvMaps maps{};
    maps.x = course::make_im2col_map(x,
                                     {.images = shape.n,
                                      .rows = shape.h,
                                      .columns = shape.w,
                                      .channels = shape.c,
                                      .filter_rows = shape.r,
                                      .filter_columns = shape.s,
                                      .padding = shape.padding,
                                      .stride = shape.stride},
                                     S::BM);
    // As matrices of K x C, one for each element (r, s).
    maps.w = course::make_tensor_map(w, filters, channels, elements * channels, {elements, 1}, {channels, 0},
                                     S::BN);
    if (through_tma) {
        const auto span = course::DeviceSpan<__nv_bfloat16>::from_device_pointer(y, pixels * filters);
        maps.y = course::make_tensor_map(course::DeviceMatrix<__nv_bfloat16>(span, pixels, filters), 16, 64);
    }

    const int tiles = course::ceil_div(shape.n * shape.plane(), S::BM) * course::ceil_div(shape.k, S::BN);
    const course::ClusterLaunch how{
        .threads = S::THREADS, .shared = sizeof(ConvRing<S>), .cluster = 1, .persistent = true};
    how.start(conv_tma_wgmma<S>, static_cast<unsigned>(tiles), stream, maps, y, shape, tiles, through_tma);
}

}  // namespace day28
