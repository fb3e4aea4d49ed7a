// Day 46, beyond: minima and maxima of products of 16-bit matrices on Hopper, by TMA and wgmma (day
// 41). The table of versions is in reduce_half.cuh.
//
// A tile has 128 x 256 results: two consumer warpgroups with 64 rows each, and a producer. A lane
// has 64 columns of two rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/warpgroup.cuh"
#include "reduce_half_wgmma.hpp"

namespace day46 {
namespace {

namespace ptx = course::ptx;

constexpr int WARPGROUP = 128;
constexpr int BM = HalfWgmmaTile::BM;
constexpr int BN = HalfWgmmaTile::BN;
constexpr int BK = 64;  // 128 bytes of a row
constexpr int STAGES = 4;
constexpr int CONSUMERS = BM / 64;
// The producer is a whole warpgroup, of which one thread works: only a warpgroup can give
// registers.
constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int ROWS = 2;       // of a lane
constexpr int COLS = BN / 4;  // of a lane

// A tile of A and one of B, each one box whose rows are 128 bytes long.
template <class E>
struct alignas(1024) HalfStage {
    E a[BM * BK];
    E b[BN * BK];
};

template <class E>
struct HalfShared {
    HalfStage<E> stages[STAGES];
    ptx::MBarrier full[STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[STAGES];  // ... when both consumers are done with the stage
};

// The rows and columns of a lane's results: lane 4 g + t of warp w has rows 16 w + g and 8 rows
// below, and columns 2 t and 2 t + 1 of each eight. col(j) ascends with j.
struct HalfLane {
    course::Tile tile;
    int consumer = static_cast<int>(threadIdx.x) / WARPGROUP;
    int warp = static_cast<int>(threadIdx.x) % WARPGROUP / 32;
    int lane = static_cast<int>(threadIdx.x) % 32;

    __device__ std::size_t row(int i) const {
        return tile.row + consumer * 64 + warp * 16 + i * 8 + lane / 4;
    }
    __device__ std::size_t col(int j) const { return tile.col + j / 2 * 8 + lane % 4 * 2 + j % 2; }
};

// Idea: `fused_wgmma` with operands that tensor cores take as they are. TMA writes a stage, wgmma
// reads it: no operand passes through a register.
// Cost removed: the splitting into TF32 numbers, two of three products, half of the bytes.
// Still limits it: not profiled. While one consumer reduces its 64 rows of a tile, the products
// of the other continue.
template <class R, class E>
__global__ void __launch_bounds__(THREADS, 1)
    reduce_tiles_half_wgmma(const __grid_constant__ CUtensorMap map_a,
                            const __grid_constant__ CUtensorMap map_b,
                            const __grid_constant__ RowPartition<HalfWgmmaTile> tiles,
                            const __grid_constant__ course::Distance distance, std::size_t results, int steps,
                            bool one_a, bool one_b, typename R::State* parts) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [stages, full, empty] = *reinterpret_cast<HalfShared<E>*>(memory);
    if (threadIdx.x == 0) {
        ptx::prefetch(&map_a);
        ptx::prefetch(&map_b);
        for (int stage = 0; stage < STAGES; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();

    const auto walk = tiles.walk();
    course::RingPosition<STAGES> at;  // the next stage, and the parity of its phase
    if (static_cast<int>(threadIdx.x) / WARPGROUP == CONSUMERS) {
        ptx::registers_decrease<24>();
        if (threadIdx.x % WARPGROUP > 0) return;
        for (unsigned i = walk.first(); walk.has(i); i = walk.next(i)) {
            const course::Tile tile = walk.at(i);
            const int product = static_cast<int>(tile.product);
            for (int step = 0; step < steps; ++step, at.advance()) {
                auto& stage = stages[at.stage];
                ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
                ptx::mbarrier_arrive_expect(&full[at.stage], sizeof stage);
                ptx::tma_load(stage.a, &map_a, step * BK, static_cast<int>(tile.row), one_a ? 0 : product, 0,
                              &full[at.stage]);
                ptx::tma_load(stage.b, &map_b, step * BK, static_cast<int>(tile.col), one_b ? 0 : product, 0,
                              &full[at.stage]);
            }
        }
        return;
    }

    ptx::registers_increase<240>();
    typename R::State states[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        states[i] = R::nothing();
    const int consumer = static_cast<int>(threadIdx.x) / WARPGROUP;
    for (unsigned tile = walk.first(); walk.has(tile); tile = walk.next(tile)) {
        float sums[BN / 2];
#pragma unroll
        for (float& sum : sums) {
            sum = 0;
            ptx::hold(sum);  // not behind the loop
        }
        int previous = -1;
        for (int step = 0; step < steps; ++step, at.advance()) {
            ptx::mbarrier_wait(&full[at.stage], at.parity);
            const std::uint64_t a = ptx::descriptor_k_major(stages[at.stage].a + consumer * 64 * BK);
            const std::uint64_t b = ptx::descriptor_k_major(stages[at.stage].b);
            ptx::wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK / 16; ++k)
                ptx::wgmma<E, false, false>(sums, ptx::advanced(a, k * 32), ptx::advanced(b, k * 32));
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            if (previous >= 0 && threadIdx.x % WARPGROUP == 0) ptx::mbarrier_arrive(&empty[previous]);
            previous = at.stage;
        }
        ptx::wgmma_wait<0>();
        if (previous >= 0 && threadIdx.x % WARPGROUP == 0) ptx::mbarrier_arrive(&empty[previous]);

        const HalfLane lane{walk.at(tile)};
        float values[ROWS][COLS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
#pragma unroll
            for (int j = 0; j < COLS; ++j)
                values[i][j] = sums[j / 2 * 4 + i * 2 + j % 2];
        }
        distance.finish(lane, values);
        if (lane.tile.col + BN > distance.n) {
#pragma unroll
            for (int j = 0; j < COLS; ++j) {
                if (lane.col(j) < distance.n) continue;
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    values[i][j] = R::kNeutral;
            }
        }
        R::add(
            [&](int i) -> auto& { return states[i]; }, values, [&](int j) { return lane.col(j); });
    }

    const HalfLane lane{walk.at(walk.first())};
    const unsigned part = blockIdx.x / tiles.rows_of_tiles;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const typename R::State row = merge_lanes<R, 4>(states[i]);
        if (lane.lane % 4 == 0 && lane.row(i) < distance.m)
            parts[part * results + lane.tile.product * distance.m + lane.row(i)] = row;
    }
}

template <class E>
std::string why_no_map(const char* name, const course::Batch<const E>& batch) {
    if (!batch.pointers.empty())
        return std::string(name) + " is behind pointers, which only a kernel can read";
    const std::string reason = course::why_no_tensor_map(batch.first);
    if (!reason.empty()) return std::string(name) + " " + reason;
    const std::size_t pitch = batch.stride * sizeof(E);
    if (batch.count > 1 && (pitch % 16 != 0 || pitch >= std::size_t{1} << 40))
        return std::string(name) + " has matrices that are " + std::to_string(pitch) +
               " bytes apart; expected a multiple of 16, less than 2^40";
    return "";
}

// In boxes of 64 along K by `extent`.
template <class E>
CUtensorMap map_of(const course::Batch<const E>& batch, unsigned extent) {
    const auto& first = batch.first;
    const bool one = batch.stride == 0;
    return course::make_tensor_map<E>(first.data(), first.rows(), first.cols(), first.leading_dimension(),
                                      {one ? 1 : batch.count, 1}, {batch.stride, 0}, extent);
}

}  // namespace

template <class E>
std::string why_no_half_wgmma(const ReducedMatmulOf<E>& matmul) {
    const auto& operands = matmul.operands;
    if (operands.k() == 0) return "there is nothing to load";
    if (std::string reason = why_no_map("A", operands.a); !reason.empty()) return reason;
    if (std::string reason = why_no_map("B", operands.b); !reason.empty()) return reason;
    return course::why_no_hopper();
}

template <class R, class E>
void launch_reduce_half_wgmma(const course::OperandsOf<E>& operands, const RowPartition<HalfWgmmaTile>& tiles,
                              const course::Distance& distance, typename R::State* parts,
                              cudaStream_t stream) {
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(operands.k(), BK));
    const course::ClusterLaunch how{
        .threads = THREADS, .shared = sizeof(HalfShared<E>), .cluster = 1, .persistent = false};
    how.start(reduce_tiles_half_wgmma<R, E>, tiles.rows_of_tiles * tiles.blocks_per_row, stream,
              map_of(operands.a, BM), map_of(operands.b, BN), tiles, distance,
              operands.m() * operands.count(), steps, operands.a.stride == 0, operands.b.stride == 0, parts);
}

template std::string why_no_half_wgmma(const ReducedMatmulOf<__half>&);
template std::string why_no_half_wgmma(const ReducedMatmulOf<__nv_bfloat16>&);
#define DAY46_LAUNCH(R, E)                                                           \
    template void launch_reduce_half_wgmma<R, E>(const course::OperandsOf<E>&,       \
                                                 const RowPartition<HalfWgmmaTile>&, \
                                                 const course::Distance&, R::State*, cudaStream_t);
DAY46_LAUNCH(Extremum<false>, __half)
DAY46_LAUNCH(Extremum<true>, __half)
DAY46_LAUNCH(Extremum<false>, __nv_bfloat16)
DAY46_LAUNCH(Extremum<true>, __nv_bfloat16)
#undef DAY46_LAUNCH

}  // namespace day46
