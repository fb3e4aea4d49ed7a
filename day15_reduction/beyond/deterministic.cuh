// Day 15, beyond: the same bits with every grid, and any type and operation.
//
// Float additions round, so the result of a float sum depends on the order of its additions. In
// single_pass that order follows from the grid, which the launcher takes from the GPU. Here it
// follows from n. It is also general: Op defines the operation. Sum, Min and Max of reduction.hpp
// have
//     Op::Element             the type of the input
//     Op::Result              the type of the result: ints are added in 64 bits
//     Op::identity()          the value that changes nothing; the result of no elements at all
//     Op{}(a, b)              two results become one; associative and commutative
#pragma once

#include <algorithm>

#include "beyond/single_pass.cuh"
#include "common/device/pack.cuh"
#include "reduction.cuh"
#include "reduction.hpp"

namespace day15 {

// block_sum() for any operation.
template <class Op, class T = typename Op::Result>
__device__ T block_combine(T value) {
    __shared__ T of_warp[kWarps];
    const auto warp_reduce = [](T x) {
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
            x = Op{}(x, __shfl_xor_sync(kWholeWarp, x, distance));
        return x;
    };
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    value = warp_reduce(value);
    __syncthreads();  // an earlier call has finished reading of_warp
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) value = warp_reduce(lane < kWarps ? of_warp[lane] : Op::identity());
    return value;
}

template <class T>
constexpr int kPack = 16 / sizeof(T);  // elements of one 16-byte load
template <class T>
constexpr int kTileOf{kBlock * kLoads * kPack<T>};  // elements of a tile

template <class Op>
__host__ __device__ std::size_t tiles_of(std::size_t n) {
    constexpr std::size_t kElements = kTileOf<typename Op::Element>;
    return n / kElements + (n % kElements != 0 ? 1 : 0);
}

// Idea: which elements belong together depends only on n. The tiles are divided into segments of
// equal length (the last may be shorter). One block reduces a whole segment, and which block does
// so does not change its result. The last block reduces the results of the segments in an order
// that depends only on their number.
// Cost removed: none. Gained: the same bits in every run, with every grid, on every GPU.
// Still limits it: memory bandwidth.
template <class Op>
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_deterministic(const typename Op::Element* in, std::size_t n, typename Op::Result* out,
                         typename Op::Result* results, unsigned* ticket, unsigned segments,
                         std::size_t tiles_per_segment) {
    using Element = typename Op::Element;
    using Result = typename Op::Result;
    using Pack = course::Pack<Element, kPack<Element>>;
    const bool aligned = course::is_aligned(in, sizeof(Pack));

    for (unsigned segment = blockIdx.x; segment < segments; segment += gridDim.x) {
        const std::size_t first_tile = segment * tiles_per_segment;
        const std::size_t end = std::min(first_tile + tiles_per_segment, tiles_of<Op>(n));

        Result values[kPack<Element>];  // one running result per element of a pack
#pragma unroll
        for (Result& value : values)
            value = Op::identity();

        for (std::size_t tile = first_tile; tile < end; ++tile) {
            const std::size_t first = tile * kTileOf<Element> + threadIdx.x * kPack<Element>;
            Pack loaded[kLoads];
            if (aligned && (tile + 1) * kTileOf<Element> <= n) {
#pragma unroll
                for (int k = 0; k < kLoads; ++k)
                    loaded[k] = Pack::load(in + first + k * kBlock * kPack<Element>);
            } else {
#pragma unroll
                for (int k = 0; k < kLoads; ++k) {
#pragma unroll
                    for (int j = 0; j < kPack<Element>; ++j) {
                        const std::size_t i = first + k * kBlock * kPack<Element> + j;
                        loaded[k].value[j] = i < n ? in[i] : static_cast<Element>(Op::identity());
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < kLoads; ++k) {
#pragma unroll
                for (int j = 0; j < kPack<Element>; ++j)
                    values[j] = Op{}(values[j], static_cast<Result>(loaded[k].value[j]));
            }
        }
#pragma unroll
        for (int j = 1; j < kPack<Element>; ++j)
            values[0] = Op{}(values[0], values[j]);

        const Result of_segment = block_combine<Op>(values[0]);
        if (threadIdx.x == 0) (segments == 1 ? *out : results[segment]) = of_segment;
    }
    if (segments == 1 || !is_last_block(ticket)) return;

    Result value = Op::identity();
    for (unsigned first = threadIdx.x; first < segments; first += kLoads * kBlock) {
#pragma unroll
        for (unsigned k = 0; k < kLoads; ++k) {
            const unsigned i = first + k * kBlock;
            value = Op{}(value, i < segments ? results[i] : Op::identity());
        }
    }
    value = block_combine<Op>(value);
    if (threadIdx.x == 0) *out = value;
}

template <class Op>
void launch_deterministic(const typename Op::Element* in, std::size_t n, typename Op::Result* out,
                          typename Op::Result* results, unsigned* ticket, unsigned blocks,
                          cudaStream_t stream) {
    // The number of segments depends only on n, so that the result does. At most kLargestGrid.
    const std::size_t tiles = tiles_of<Op>(n);
    const std::size_t tiles_per_segment =
        std::max<std::size_t>(1, course::ceil_div<std::size_t>(tiles, kLargestGrid));
    const auto segments = static_cast<unsigned>(course::ceil_div(tiles, tiles_per_segment));
    // The grid may, because the block that reduces a segment does not affect its result.
    const unsigned grid =
        grid_size(blocks, segments, 1, course::resident_blocks(reduce_deterministic<Op>, kBlock));
    reduce_deterministic<Op>
        <<<grid, kBlock, 0, stream>>>(in, n, out, results, ticket, segments, tiles_per_segment);
}

}  // namespace day15
