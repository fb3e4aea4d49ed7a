// The host side of steps 12 and 13 for any tile T, and the entry of a tile in tiles().
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "12_multi_stage.cuh"
#include "13_stream_k.cuh"
#include "launch.hpp"
#include "tiles.hpp"

namespace gemm {

// Step 12. An SM runs BLOCKS blocks at the same time.
template <class T, int BLOCKS>
using MultiStage = BlockPerTile<T::BM, T::BN, T::THREADS, sgemm_multi_stage<T, 4, BLOCKS>,
                                sgemm_multi_stage<T, 1, BLOCKS>, sizeof(Stage<T>) * T::STAGES>;

// Step 13: a cooperative launch, because blocks wait for each other.
template <class T, int BLOCKS>
struct StreamK {
    static constexpr std::size_t SHARED = sizeof(Stage<T>) * T::STAGES;
    template <int VEC>
    static constexpr auto kKernel = sgemm_stream_k<T, VEC, BLOCKS>;

    // How many blocks the device runs at the same time.
    static unsigned resident() {
        course::allow_shared_bytes(kKernel<4>, SHARED);
        course::allow_shared_bytes(kKernel<1>, SHARED);
        return std::min(course::resident_blocks(kKernel<4>, T::THREADS, SHARED),
                        course::resident_blocks(kKernel<1>, T::THREADS, SHARED));
    }

    static ScratchSize scratch(const Shape& shape) {
        const std::size_t tiles = tiles_in<T::BM, T::BN>(shape.m, shape.n);
        return {.partial = std::size_t{2} * resident() * T::BM * T::BN, .tickets = tiles};
    }

    // On `blocks` blocks, but no more than there are steps along K, or than run at the same time.
    static void launch_on(unsigned blocks, const Sgemm& given, cudaStream_t stream) {
        if (blocks == 0)
            throw std::invalid_argument("sgemm: blocks is 0; expected at least 1 to share the work");
        Sgemm gemm = checked(given, scratch({given.m(), given.n(), given.k()}));
        const unsigned tiles = tiles_of<T::BM, T::BN>(gemm);
        if (tiles == 0) return;
        // K = 0 has one step, an empty one, so that C is written.
        Division division{};
        division.steps_in_tile = std::max<std::size_t>(course::ceil_div<std::size_t>(gemm.k(), T::BK), 1);
        division.steps = division.steps_in_tile * tiles;
        division.blocks = static_cast<unsigned>(std::min<std::size_t>({blocks, resident(), division.steps}));
        const auto kernel = rows_are_whole_packs(gemm) ? kKernel<4> : kKernel<1>;
        void* arguments[] = {&gemm, &division};
        CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(division.blocks), dim3(T::THREADS), arguments,
                                               SHARED, stream));
    }

    static void launch(const Sgemm& gemm, cudaStream_t stream) { launch_on(resident(), gemm, stream); }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kKernel<4>, SHARED);
        return course::resources_of(kKernel<4>, T::THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources, scratch}; }
};

// Both, with what the dispatcher needs to choose.
template <class T, int BLOCKS>
TileKernels make_tile(std::string_view name) {
    static_assert(BLOCKS <= static_cast<int>(kMostBlocks), "make_tile: BLOCKS must be at most kMostBlocks");
    return {.name = name,
            .bm = T::BM,
            .bn = T::BN,
            .bk = T::BK,
            .most_blocks = BLOCKS,
            .threads = T::THREADS,
            .shared_bytes = StreamK<T, BLOCKS>::SHARED,
            .whole = MultiStage<T, BLOCKS>::kernel(),
            .shared = StreamK<T, BLOCKS>::kernel(),
            .launch_shared_on = StreamK<T, BLOCKS>::launch_on};
}

}  // namespace gemm
