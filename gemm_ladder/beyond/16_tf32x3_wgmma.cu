// Step 16: FP32 accuracy from tensor cores, by wgmma.
//
// Change:     the products of step 15 by wgmma, Hopper's instruction of four warps, on tiles that
//             TMA copies (day 41). B goes through registers, A is read from shared memory.
// Why:        step 15 multiplies TF32 at 3 x 70 = 210 TFLOP/s, where cuBLAS reaches 394. Only wgmma
//             has Hopper's full rate. And in step 15 each warp splits the operands of its tile.
// Prediction: a third of 394 would be 131 TFLOP/s, 2.6 times cuBLAS in FP32. Runs must be added up
//             and A be split, while other warps multiply: 2 times cuBLAS.
// Counter:    sm__inst_executed_pipe_tensor.sum.pct_of_peak_sustained_active
// Measured:   in one run with cuBLAS in FP32 on an H200: 2.24 times as fast at 4096 cubed, 2.11
//             times at 8192.
// Limit:      tensor cores (counters: 74 % busy).
// Next:       the splitting of A: without it, 8192 cubed took 6 to 11 % less time on an H100.
//
// The parts are in common/tile/tf32_wgmma.cuh, to be read after this page: day 46 multiplies in the
// same way. When the kernel runs, and when step 14 is faster: tf32_dispatcher.cu.
//
// wgmma has a left operand, in shared memory or in registers, and a right one, always in shared
// memory. For 32-bit types, both must be K-major in shared memory: rows of elements that are
// adjacent along K. A is, B is not. But in registers an operand has no order. So B is the left
// operand, and the result is C^T:
//
//     C^T = B^T A^T        left: 64 columns of B, in registers        right: 128 rows of A
//
// Each lane splits what it has loaded of B. A is split by the producer's warps: they write the
// small parts to shared memory, beside the tile that TMA has copied there. The big parts do not
// have to be written, because tensor cores ignore the last 13 bits of a float.
//
// Accuracy: sums of many terms have less error than FP32's, as in step 15. If one term is nearly
// the whole sum, they have more: a single product is off by up to 2^-20, where FP32 rounds by
// 2^-24.
//
// What did not work: loading the next operands of B while products run, and consumers that take
// turns by named barriers. Both are slower than two consumers that run independently. A tile of 192
// rows is a little faster at 8192 cubed and slower at 4096, because its last wave of blocks is
// emptier.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/raster_order.cuh"
#include "common/tile/tf32_wgmma.cuh"
#include "launch.hpp"
#include "tf32x3_wgmma.hpp"
#include "tile.cuh"

namespace gemm {
namespace {

namespace ptx = course::ptx;
using namespace course::tf32;
using course::RasterOrder;

constexpr int BAND = 8;  // rows of tiles: see RasterOrder

struct Shared {
    Ring<4> ring;
    unsigned not_finite;  // is one of the block's results Inf or NaN?
};

// Stores a lane's results to the tile of C at `origin`, both columns in one access if C allows it.
__device__ void write_results(const Sgemm& gemm, const Origin& origin, const Lane& lane, Sums& sums) {
    const std::size_t col = origin.col + lane.col();
    const bool pairs = gemm.c.leading_dimension() % 2 == 0 && course::is_aligned(gemm.c.data(), 8);
#pragma unroll
    for (int i = 0; i < BM / 4; ++i) {
        const float both[] = {result(sums, i, 0), result(sums, i, 1)};
        const std::size_t row = origin.row + lane.row(i);
        if (pairs) {
            write_row_of_packs<2, 1>(gemm, row, col, both);
        } else {
            write_row_of_packs<1, 1>(gemm, row, col, both);
        }
    }
}

// Split-K, as in step 11: `count` blocks share a tile, each with `steps` steps along K. With more
// than one, part i of the sums is stored to `sums`, from row i `rows` on: whole tiles.
struct Splits {
    int count;
    int steps;
    std::size_t rows;
    DeviceMatrix<float> sums;
};

// 16a_wgmma_alone: one part. 16_tf32x3_wgmma: as many as tf32_dispatcher.cu predicts to be best.
__global__ __launch_bounds__(THREADS, 1) void sgemm_tf32x3_wgmma(const __grid_constant__ Maps maps,
                                                                 const __grid_constant__ Sgemm gemm,
                                                                 const RasterOrder order,
                                                                 const __grid_constant__ Splits splits) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, not_finite] = *reinterpret_cast<Shared*>(memory);
    if (threadIdx.x == 0) not_finite = 0;
    ring.init();
    const int tiles = order.rows * order.columns;
    const int split = static_cast<int>(blockIdx.x) / tiles;
    const auto [tile_row, tile_col] = order.tile(static_cast<int>(blockIdx.x) % tiles);
    const int row = tile_row * BM;
    const int col = tile_col * BN;
    const int first_step = split * splits.steps;
    const int all_steps = static_cast<int>(course::ceil_div<std::size_t>(gemm.k(), BK));
    const int steps = min(splits.steps, all_steps - first_step);
    const Lane lane;
    if (lane.consumer == CONSUMERS) {
        give_registers();
        return produce(ring, maps, steps, [=](int step) {
            return StepCoords{row, col, (first_step + step) * BK};
        });
    }
    take_registers();
    Sums sums = {};
    for (int step = 0; step < steps; ++step)
        consume(ring, step, lane, sums);
    const Origin origin{static_cast<std::size_t>(row), static_cast<std::size_t>(col)};
    if (splits.count > 1)
        return write_results({gemm.a, gemm.b, splits.sums}, {origin.row + split * splits.rows, origin.col},
                             lane, sums);
    // Inf and NaN: as in step 15.
    if (!all_finite(sums)) atomicOr(&not_finite, 1u);
    ptx::named_barrier(1, CONSUMERS * WARPGROUP);
    if (not_finite != 0) {
        write_fp32_tile<BM, BN>(gemm, origin, CONSUMERS * WARPGROUP);
    } else {
        write_results(gemm, origin, lane, sums);
    }
}

// Adds up the parts: a thread for each element of C.
__global__ void add_splits(const __grid_constant__ Sgemm gemm, const __grid_constant__ Splits splits) {
    const std::size_t element = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row = element / gemm.n();
    const std::size_t col = element % gemm.n();
    if (row >= gemm.m()) return;
    float sum = 0;
#pragma unroll 8
    for (int split = 0; split < splits.count; ++split)
        sum += splits.sums(split * splits.rows + row, col);
    if (!isfinite(sum)) sum = fp32_element(gemm, row, col);
    write_element(gemm, row, col, sum);
}

// The numbers only: `sums` is empty.
Splits splits_of(const Shape& shape, int wanted) {
    const auto steps = static_cast<int>(course::ceil_div<std::size_t>(shape.k, BK));
    const int each = course::ceil_div(steps, std::max(wanted, 1));
    return {.count = steps == 0 ? 1 : course::ceil_div(steps, each),
            .steps = each,
            .rows = course::ceil_div<std::size_t>(shape.m, BM) * BM,
            .sums = {}};
}

std::size_t pitch_of(const Shape& shape) {
    return course::ceil_div<std::size_t>(shape.n, 2) * 2;  // pairs are stored
}

}  // namespace

std::string why_no_tf32_wgmma(const Shape&) {
    return course::why_no_hopper();
}

ScratchSize tf32x3_wgmma_scratch(const Shape& shape, int splits) {
    const Splits all = splits_of(shape, splits);
    return {.partial = all.count == 1 ? 0 : all.count * all.rows * pitch_of(shape)};
}

void launch_tf32x3_wgmma(int wanted_splits, const Sgemm& gemm, cudaStream_t stream) {
    if (gemm.m() == 0 || gemm.n() == 0) return;
    Maps maps{};
    if (gemm.k() > 0) {
        maps.a = course::make_tensor_map(gemm.a, BM, BK);
        maps.b = course::make_tensor_map(gemm.b, BK, BOX);
    }
    const Shape shape{gemm.m(), gemm.n(), gemm.k()};
    Splits splits = splits_of(shape, wanted_splits);
    if (splits.count > 1)
        splits.sums = {gemm.scratch.partial, splits.count * splits.rows, shape.n, pitch_of(shape)};
    const RasterOrder order = course::make_order(gemm.c, BM, BN, BAND);
    const course::ClusterLaunch how{
        .threads = THREADS, .shared = sizeof(Shared), .cluster = 1, .persistent = false};
    how.start(sgemm_tf32x3_wgmma, course::blocks_of(order, splits.count), stream, maps, gemm, order, splits);
    if (splits.count == 1) return;
    constexpr unsigned kThreads = 128;
    course::launch(add_splits, {course::blocks_for(gemm.m() * gemm.n(), kThreads), kThreads, 0, stream}, gemm,
                   splits);
}

course::KernelResources tf32x3_wgmma_resources() {
    course::allow_shared_bytes(sgemm_tf32x3_wgmma, sizeof(Shared));
    return course::resources_of(sgemm_tf32x3_wgmma, THREADS, sizeof(Shared));
}

}  // namespace gemm
