// Day 46, beyond: the fused reduction on Hopper, with the products on tensor cores.
//
// Step 16 of the ladder multiplies TF32 in FP32 accuracy: each operand is split into two TF32
// numbers, and three products replace one (common/tile/tf32_wgmma.cuh). What is new here is the
// epilogue. A lane has 32 x 2 results of a tile: 32 rows, two columns.
#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/tf32_wgmma.cuh"
#include "reduce_wgmma.hpp"

namespace day46 {
namespace {

using namespace course::tf32;

constexpr int ROWS = BM / 4;  // of a lane
constexpr int CONSUMER_THREADS = CONSUMERS * WARPGROUP;
static_assert(BM == WgmmaTile::BM && BN == WgmmaTile::BN && CONSUMER_THREADS / 32 == kPartsOfBlock);

template <class R>
struct Shared {
    Ring<3> ring;
    typename R::State states[ROWS][CONSUMER_THREADS];
    float norms[BM];  // of the block's rows, if the metric uses norms
};

// The rows and columns of a lane's results, in the product.
struct LaneCoords {
    Lane lane;
    course::Tile tile;
    const float* norms;  // of the tile's rows, in shared memory

    __device__ std::size_t row(int i) const { return tile.row + lane.row(i); }
    __device__ std::size_t col(int h) const { return tile.col + lane.col() + h; }
    __device__ float norm_of_row(int i) const { return norms[lane.row(i)]; }
};

// Splitting Inf, or a number that TF32 rounds to Inf, leaves Inf or NaN in the sum. Such a sum is
// recomputed in FP32.
__device__ void repair(const course::Operands& operands, const LaneCoords& at, float (&values)[ROWS][2]) {
    const auto a = operands.a[0];
    const auto b = operands.b[0];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (isfinite(values[i][h]) || at.row(i) >= a.rows() || at.col(h) >= b.cols()) continue;
            float sum = 0;
#pragma unroll 1
            for (std::size_t k = 0; k < a.cols(); ++k)
                sum += a(at.row(i), k) * b(k, at.col(h));
            values[i][h] = sum;
        }
    }
}

// Idea: `fused` on tensor cores.
// Cost removed: multiply-adds of CUDA cores. While one consumer reduces its half of a tile, the
// products of the other continue.
// Still limits it: with a short d, products and reduction in turn (d = 64, counters: shared memory
// 58 % busy, tensor cores 54 %, issue slots 38 %); with a long one, three products instead of one.
template <class R>
__global__ void __launch_bounds__(THREADS, 1)
    reduce_tiles_wgmma(const __grid_constant__ Maps maps, const __grid_constant__ course::Operands operands,
                       const __grid_constant__ RowPartition<WgmmaTile> tiles,
                       const __grid_constant__ course::Distance distance, typename R::State* parts) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& ring = reinterpret_cast<Shared<R>*>(memory)->ring;
    auto& states = reinterpret_cast<Shared<R>*>(memory)->states;
    auto& norms = reinterpret_cast<Shared<R>*>(memory)->norms;
    const auto walk = tiles.walk();
    const int row = static_cast<int>(walk.at(0).row);
    // All tiles of a block have the same rows.
    if (threadIdx.x < BM && distance.takes_norms())
        norms[threadIdx.x] = row + threadIdx.x < distance.m ? distance.norms_a[row + threadIdx.x] : 0;
    ring.init();
    const int first = static_cast<int>(walk.first());
    const int count = static_cast<int>(walk.count());
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(operands.k(), BK));
    const Lane lane;
    if (lane.consumer == CONSUMERS) {
        give_registers();
        return produce(ring, maps, count * steps, [=](int step) {
            return StepCoords{row, (first + step / steps) * BN, step % steps * BK};
        });
    }
    take_registers();
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        states[i][threadIdx.x] = R::nothing();
    for (int tile = 0; tile < count; ++tile) {
        Sums sums = {};
        for (int step = 0; step < steps; ++step)
            consume(ring, tile * steps + step, lane, sums);
        const LaneCoords at{lane, walk.at(first + tile), norms};
        float values[ROWS][2];
        float zero = 0;  // NaN when one of the values is not finite
#pragma unroll
        for (int i = 0; i < ROWS * 2; ++i) {
            values[i / 2][i % 2] = result(sums, i / 2, i % 2);
            zero += 0 * values[i / 2][i % 2];
        }
        if (zero != 0) repair(operands, at, values);
        distance.finish(at, values);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (at.col(h) < distance.n) continue;
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                values[i][h] = R::kNeutral;
        }
        R::add(
            [&](int i) -> auto& { return states[i][threadIdx.x]; }, values, [&](int h) { return at.col(h); });
    }
    // Eight lanes of a warp have the same rows.
    const unsigned part = blockIdx.x / tiles.rows_of_tiles * kPartsOfBlock + threadIdx.x / 32;
    const LaneCoords at{lane, walk.at(first), norms};
#pragma unroll 1
    for (int i = 0; i < ROWS; ++i) {
        typename R::State state = states[i][threadIdx.x];
        for (int distance_of_lanes = 4; distance_of_lanes < 32; distance_of_lanes *= 2)
            state = R::merge(state, R::shuffled(state, distance_of_lanes));
        if (lane.g == 0 && at.row(i) < distance.m) parts[part * distance.m + at.row(i)] = state;
    }
}

}  // namespace

template <class R>
void launch_reduce_wgmma(const course::Operands& operands, const RowPartition<WgmmaTile>& tiles,
                         const course::Distance& distance, typename R::State* parts, cudaStream_t stream) {
    const Maps maps{course::make_tensor_map(operands.a.first, BM, BK),
                    course::make_tensor_map(operands.b.first, BK, BOX)};
    const course::ClusterLaunch how{
        .threads = THREADS, .shared = sizeof(Shared<R>), .cluster = 1, .persistent = false};
    how.start(reduce_tiles_wgmma<R>, tiles.rows_of_tiles * tiles.blocks_per_row, stream, maps, operands,
              tiles, distance, parts);
}
template void launch_reduce_wgmma<Extremum<false>>(const course::Operands&, const RowPartition<WgmmaTile>&,
                                                   const course::Distance&, Extremum<false>::State*,
                                                   cudaStream_t);
template void launch_reduce_wgmma<Extremum<true>>(const course::Operands&, const RowPartition<WgmmaTile>&,
                                                  const course::Distance&, Extremum<true>::State*,
                                                  cudaStream_t);

std::string why_no_wgmma(const ReducedMatmul& matmul) {
    const course::Operands& operands = matmul.operands;
    if (matmul.reduction != Reduction::kMin && matmul.reduction != Reduction::kMax)
        return "reduces to a minimum or a maximum";
    if (matmul.metric == course::Metric::kDifferences) return "takes metrics that are products";
    if (operands.count() != 1 || operands.op_a != course::Op::kNone || operands.op_b != course::Op::kNone ||
        !operands.a.pointers.empty() || !operands.b.pointers.empty())
        return "takes one product, not transposed";
    // Sums of fewer terms have a larger error than FP32's (common/tile/tf32_split.cuh).
    if (operands.k() < 16) return "takes vectors of 16 numbers or more";
    for (const auto& matrix : {operands.a.first, operands.b.first}) {
        if (const std::string reason = course::why_no_tensor_map(matrix); !reason.empty()) return reason;
    }
    return course::why_no_hopper();
}

}  // namespace day46
