// Day 40, last page, with Hopper's own instructions: see eight_bit.cu. Stages, roles and stores are those of hopper/.
#include <string>
#include <vector>

#include "common/device/tensor_map.hpp"
#include "eight_bit_arguments.hpp"
#include "eight_bit_hopper.hpp"
#include "hopper/launch.hpp"
#include "hopper/store.cuh"
#include "hopper/tile.cuh"

namespace day40::eight_bit {
namespace {

// What is added to sums is added after the wait, and what is set is set before the products begin.
template <class Array>
__device__ void hold(Array& sums) {
#pragma unroll
    for (auto& sum : sums)
        ptx::hold(sum);
}

// As multiply(), but the products of each stage are summed for themselves, and those sums added by the CUDA cores.
template <class S>
__device__ void multiply_promoted(Stages<S>& stages, Turn<S>& turn, int group, int steps, Sums<S>& sums) {
#pragma unroll
    for (auto& sum : sums)
        sum = 0;
    for (int step = 0; step < steps; ++step, turn.next()) {
        Sums<S> of_stage = {};
        hold(of_stage);
        ptx::mbarrier_wait(&stages.full[turn.stage], turn.parity);
        start_products(stages, turn.stage, group, of_stage);
        ptx::wgmma_wait<0>();
        hold(of_stage);
        stages.release(turn.stage);
#pragma unroll
        for (int i = 0; i < S::BN / 2; ++i)
            sums[i] += of_stage[i];
    }
}

// --- Kernel ------------------------------------------------------------------------------------------------------------

template <class S>
struct Memory {
    Stages<S> stages;
    alignas(1024) Slices<S> slices;
};

// Idea: async_store with elements of half the size. TMA, barriers and swizzle count bytes, and so does the distance from product to
// product: nothing changes but the boxes of B, which lie along k. The plans below make two versions of it.
// Cost removed: half of the bytes from global to shared memory, and half of the products' time.
// Still limits it: see the plans.
template <class S, bool kPromoted>
__global__ void __launch_bounds__((1 + S::MULTIPLIERS) * kWarpgroup)
    bytes_wgmma(const __grid_constant__ Maps maps, OutputOf<typename S::Sum> out, int depth, Order order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Memory<S>*>(memory);
    shared.stages.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // -1: the producer

    Turn<S> turn;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first; tile < tiles; tile += clusters)
                produce(shared.stages, turn, maps, place_of<S>(order, tile), 0, steps);
        }
        __syncwarp();  // whole warps meet
    } else {
        S::take_registers();
        const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
        for (int tile = first; tile < tiles; tile += clusters) {
            Place place = place_of<S>(order, tile);
            place.row += group * 64;
            Sums<S> sums;
            if constexpr (kPromoted) {
                multiply_promoted(shared.stages, turn, group, steps, sums);
            } else {
                multiply(shared.stages, turn, group, steps, sums);
            }
            store_through_tma<S>(maps.c, shared.slices[warp], out, place, sums);
        }
        ptx::tma_store_wait<0>();
    }
    if constexpr (S::CLUSTER > 1) shared.stages.meet();  // no block ends while another may still write to it
}

// --- Plans: the versions -----------------------------------------------------------------------------------------------

// Idea: the largest tile; wgmma's sums stay where they are until the tile is done.
// Cost removed: see above.
// Still limits it: of integers, nothing but the end of tiles and power. Of FP8 the sums: Hopper adds with fewer digits than a float has, and where
// many numbers are added, what is small beside their sum is lost.
struct BytesWgmma {
    template <class T>
    using Shape = day40::TileShape<T, 128, 256, 4, 2>;
    static constexpr bool kPromoted = false;
};

// Idea: the tensor cores sum 128 products at a time, and the CUDA cores add these sums as floats.
// Cost removed: the lost digits.
// Still limits it: two sums for each result take twice the registers, so tiles are half as wide; and while a warpgroup adds, only the other one
// multiplies.
struct BytesPromoted {
    template <class T>
    using Shape = day40::TileShape<T, 128, 128, 6, 2>;
    static constexpr bool kPromoted = true;
};

// --- Launchers ---------------------------------------------------------------------------------------------------------

constexpr int kBand = 8;

template <class Plan, class T>
struct Launch {
    using S = typename Plan::template Shape<T>;
    static constexpr ClusterLaunch kHow = {.threads = (1 + S::MULTIPLIERS) * kWarpgroup,
                                           .shared = sizeof(Memory<S>),
                                           .cluster = S::CLUSTER,
                                           .persistent = true};
    static constexpr auto kKernel = bytes_wgmma<S, Plan::kPromoted>;

    static std::string why_not(const Product<T>& product) {
        check(product);
        std::string reason;
        const auto look_at = [&reason](const char* name, const auto& matrix) {
            if (!reason.empty()) return;
            reason = course::why_no_tensor_map(matrix);
            if (!reason.empty()) reason = std::string(name) + " " + reason;
        };
        if (product.a.cols() > 0) {
            look_at("A", product.a);
            look_at("B", product.b);
        }
        look_at("C", product.c);
        return reason;
    }

    static void launch(const Product<T>& product, cudaStream_t stream) {
        const std::string reason = why_not(product);
        course::require(reason.empty(), "eight_bit: ", reason);
        const auto& [a, b, c] = product;
        if (c.rows() == 0 || c.cols() == 0) return;

        Maps maps{};
        if (a.cols() > 0) {
            maps.a = course::make_tensor_map(a, S::BM, S::BK);
            maps.b = course::make_tensor_map(b, S::SHARE, S::IN_ROW);
        }
        maps.c = course::make_tensor_map(c, 16, kSliceColumns);
        const Order order = make_order(c, S::BM * S::SHARERS, S::BN, kBand);
        kHow.start(kKernel, blocks_of(order, S::CLUSTER), stream, maps, make_output<Sum<T>>(c, 1, 0),
                   static_cast<int>(a.cols()), order);
    }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kKernel, kHow.shared);
        return course::resources_of(kKernel, kHow.threads, kHow.shared);
    }

    static KernelFor<T> kernel_for() {
        return {.launch = launch, .why_not = why_not, .resources = resources};
    }
};

}  // namespace

std::vector<Version> hopper_versions() {
    return {{.name = "bytes_wgmma",
             .idea = "TMA and wgmma with 32 of k, persistent, C stored by TMA",
             .launcher = {.int8 = Launch<BytesWgmma, std::int8_t>::kernel_for(),
                          .e4m3 = Launch<BytesWgmma, __nv_fp8_e4m3>::kernel_for(),
                          .e5m2 = Launch<BytesWgmma, __nv_fp8_e5m2>::kernel_for()},
             .work = work_of,
             .constraint = why_no_hopper},
            {.name = "bytes_promoted",
             .idea = "FP8: every 128 products are added in single precision",
             .launcher = {.int8 = {},  // its sums are exact
                          .e4m3 = Launch<BytesPromoted, __nv_fp8_e4m3>::kernel_for(),
                          .e5m2 = Launch<BytesPromoted, __nv_fp8_e5m2>::kernel_for()},
             .work = work_of,
             .constraint = why_no_hopper}};
}

}  // namespace day40::eight_bit
