// Day 48, beyond: half_wgmma, the fused selection from products of 16-bit matrices on Hopper, by
// TMA and wgmma (day 41).
//
// A tile has 128 queries by 256 points: two consumer warpgroups with 64 queries each, and a
// producer. The main loop is that of day 46's half_wgmma. A warp has whole rows
// of the tile, so the lists are those of fused_wgmma (warp_lists.cuh).
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
#include "half_lists_wgmma.hpp"
#include "half_top_k.hpp"
#include "warp_lists.cuh"

namespace day48 {
namespace {

namespace ptx = course::ptx;

constexpr int BK = 64;  // 128 bytes of a row
constexpr int STAGES = 4;
constexpr int CONSUMERS = T::BM / 64;
// The producer is a whole warpgroup, of which one thread works: only a warpgroup can give
// registers.
constexpr int THREADS = (CONSUMERS + 1) * course::kWarpgroup;
constexpr int SUMS = T::BN / 2;  // of a lane

// A tile of A and one of B, each one box whose rows are 128 bytes long.
template <class E>
struct alignas(1024) HalfStage {
    E a[T::BM * BK];
    E b[T::BN * BK];
};

template <class E>
struct HalfShared {
    HalfStage<E> stages[STAGES];
    ptx::MBarrier full[STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[STAGES];  // ... when both consumers are done with the stage
    RowState rows;
};

struct HalfMaps {
    CUtensorMap a;
    CUtensorMap b;
    bool one_a;  // one matrix A for all products
    bool one_b;
};

// Warp w of the consumers has rows 16 w to 16 w + 15 of the tile.
struct HalfRowsOfWarp {
    unsigned first = threadIdx.x / course::kWarpSize * kRowsOfWarp;

    __device__ unsigned operator()(unsigned i) const { return first + i; }
};

// Where a lane's results are, in the layout of wgmma: value [h][i] is that of query row(h) and
// point col(i).
struct HalfLane {
    HalfRowsOfWarp rows;
    course::Tile tile;  // tile.col: of this half
    unsigned lane = threadIdx.x % course::kWarpSize;

    __device__ unsigned row_in_tile(int h) const { return rows(h * 8 + lane / 4); }
    __device__ std::size_t row(int h) const { return tile.row + row_in_tile(h); }
    __device__ std::size_t col(int i) const { return tile.col + i / 2 * 8 + lane % 4 * 2 + i % 2; }
};

// Idea: `fused_wgmma` with operands that tensor cores take as they are. TMA writes a stage, wgmma
// reads it: no operand passes through a register.
// Cost removed: the splitting into TF32 numbers, two of three products, half of the bytes.
// Still limits it: not profiled. While one consumer lists the values of its 64 queries, the
// products of the other continue.
template <class E>
__global__ void __launch_bounds__(THREADS, 1)
    list_best_half_wgmma(const __grid_constant__ HalfMaps maps, const int steps,
                         const __grid_constant__ course::Distance distance, const float sign,
                         const __grid_constant__ RowLists lists) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<HalfShared<E>*>(memory);
    const EqualShares& tiles = lists.pieces.tiles;
    const unsigned first = tiles.first();
    const unsigned last = tiles.last();
    if (threadIdx.x == 0) {
        ptx::prefetch(&maps.a);
        ptx::prefetch(&maps.b);
        for (int stage = 0; stage < STAGES; ++stage) {
            ptx::mbarrier_init(&shared.full[stage], 1);
            ptx::mbarrier_init(&shared.empty[stage], CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    start_rows(shared.rows, tiles);  // ends with a barrier of the block

    course::RingPosition<STAGES> at;  // the next stage, and the parity of its phase
    const int consumer = static_cast<int>(threadIdx.x) / course::kWarpgroup;
    if (consumer == CONSUMERS) {
        ptx::registers_decrease<24>();
        if (threadIdx.x % course::kWarpgroup > 0) return;
#pragma unroll 1
        for (unsigned i = first; i <= last; ++i) {
            const course::Tile tile = tiles.at(i);
            const int product = static_cast<int>(tile.product);
#pragma unroll 1
            for (int step = 0; step < steps; ++step, at.advance()) {
                HalfStage<E>& stage = shared.stages[at.stage];
                ptx::MBarrier* const full = &shared.full[at.stage];
                ptx::mbarrier_wait(&shared.empty[at.stage], at.parity ^ 1);
                ptx::mbarrier_arrive_expect(full, sizeof stage);
                ptx::tma_load(stage.a, &maps.a, step * BK, static_cast<int>(tile.row),
                              maps.one_a ? 0 : product, 0, full);
                ptx::tma_load(stage.b, &maps.b, step * BK, static_cast<int>(tile.col),
                              maps.one_b ? 0 : product, 0, full);
            }
        }
        return;
    }

    ptx::registers_increase<240>();
    const WarpLists<HalfRowsOfWarp> warp{lists, shared.rows, {}};
#pragma unroll 1
    for (unsigned i = first; i <= last; ++i) {
        const course::Tile tile = tiles.at(i);
        const unsigned before = min(i % tiles.across, i - first);  // tiles of this row that are done
        if (is_time_for_bounds(before)) warp.read(tile);
        float sums[SUMS];
        course::clear(sums);
        int previous = -1;
#pragma unroll 1
        for (int step = 0; step < steps; ++step, at.advance()) {
            const HalfStage<E>& stage = shared.stages[at.stage];
            ptx::mbarrier_wait(&shared.full[at.stage], at.parity);
            const std::uint64_t a = ptx::descriptor_k_major(stage.a + consumer * 64 * BK);
            const std::uint64_t b = ptx::descriptor_k_major(stage.b);
            ptx::wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK / 16; ++k)
                ptx::wgmma<E, false, false>(sums, ptx::advanced(a, k * 32), ptx::advanced(b, k * 32));
            ptx::wgmma_commit();
            ptx::wgmma_wait<1>();
            if (previous >= 0) course::release(&shared.empty[previous]);
            previous = at.stage;
        }
        ptx::wgmma_wait<0>();
        course::release(&shared.empty[previous]);

        bool is_full = false;
#pragma unroll
        for (int part = 0; part < HALVES; ++part) {
            const HalfLane lane{{}, {tile.product, tile.row, tile.col + std::size_t(part) * POINTS}};
            float values[2][OF_LANE];
#pragma unroll
            for (int j = 0; j < OF_LANE * 2; ++j)
                values[j / 2 % 2][j / 4 * 2 + j % 2] = sums[part * OF_LANE * 2 + j];
            is_full |= warp.append_half(distance, sign, lane, values);
        }
        warp.end_tile(tile, before, is_full, i == last);
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
std::string why_no_half_wgmma(const course::OperandsOf<E>& operands) {
    if (std::string reason = why_no_map("A", operands.a); !reason.empty()) return reason;
    if (std::string reason = why_no_map("B", operands.b); !reason.empty()) return reason;
    return course::why_no_hopper();
}

template <class E>
void launch_list_best_half_wgmma(const course::OperandsOf<E>& operands, const course::Distance& distance,
                                 float sign, const RowLists& lists, cudaStream_t stream) {
    const HalfMaps maps{map_of(operands.a, T::BM), map_of(operands.b, T::BN), operands.a.stride == 0,
                        operands.b.stride == 0};
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(operands.k(), BK));
    const course::ClusterLaunch how{
        .threads = THREADS, .shared = sizeof(HalfShared<E>), .cluster = 1, .persistent = false};
    how.start(list_best_half_wgmma<E>, lists.pieces.tiles.blocks, stream, maps, steps, distance, sign, lists);
}

template std::string why_no_half_wgmma(const course::OperandsOf<__half>&);
template std::string why_no_half_wgmma(const course::OperandsOf<__nv_bfloat16>&);
template void launch_list_best_half_wgmma(const course::OperandsOf<__half>&, const course::Distance&, float,
                                          const RowLists&, cudaStream_t);
template void launch_list_best_half_wgmma(const course::OperandsOf<__nv_bfloat16>&, const course::Distance&,
                                          float, const RowLists&, cudaStream_t);

}  // namespace day48
