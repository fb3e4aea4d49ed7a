// Which sets of parameters the sweep has, and their kernels: step 12's (beyond/12_multi_stage.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "../beyond/12_multi_stage.cuh"
#include "../beyond/launch.hpp"
#include "sweep.hpp"

namespace gemm {

// --- The list ------------------------------------------------------------------------------------

// BM x BN; BK; WM x WN with the TM x TN of its 32 lanes; stages.
inline constexpr std::array<std::array<int, 2>, 6> kBlockTiles = {
    {{64, 64}, {64, 128}, {128, 64}, {128, 128}, {128, 256}, {256, 128}}};
inline constexpr std::array kDepths = {8, 16};
inline constexpr std::array<std::array<int, 4>, 6> kWarpTiles = {
    {{16, 32, 4, 4}, {32, 32, 8, 4}, {32, 64, 8, 8}, {64, 32, 8, 8}, {64, 64, 16, 8}, {64, 64, 8, 16}}};
inline constexpr std::array kStages = {2, 3, 4};

constexpr int threads_of(const TileParameters& p) {
    return p.bm / p.wm * (p.bn / p.wn) * 32;
}

constexpr int shared_bytes_of(const TileParameters& p) {
    return (p.bm + 4 + p.bn) * p.bk * 4 * p.stages;  // Stage
}

// Blocks that an SM of Hopper can run at the same time. A thread has its sums, two pairs of
// fragments, and at most 48 registers for addresses and counters. Each quarter of the SM has 16,384
// registers for its warps. The SM has 228 KB of shared memory, of which each block takes 1 KB more.
constexpr int blocks_of(const TileParameters& p) {
    const int registers = p.tm * p.tn + 2 * (p.tm + p.tn) + 48;
    const int warps = 4 * (16384 / (32 * registers));
    return std::min(warps * 32 / threads_of(p), (228 << 10) / (shared_bytes_of(p) + 1024));
}

// What the kernel asserts (TileShape, CopiesOfA, CopiesOfB, write_tile), and room for one block.
constexpr bool is_valid(const TileParameters& p) {
    if (p.bm % p.wm != 0 || p.bn % p.wn != 0) return false;
    const int threads = threads_of(p);
    if (threads < 64 || threads > 1024) return false;  // one warp leaves three schedulers without work
    const int rows_of_a = threads / 8;
    const int rows_of_b = threads / (p.bn / 4);
    if (p.bm % rows_of_a != 0) return false;
    if (threads % (p.bn / 4) != 0 || rows_of_b == 0 || p.bk % rows_of_b != 0) return false;
    if (threads / 32 * (p.wm / p.tm) * p.wn * 4 > shared_bytes_of(p)) return false;
    return blocks_of(p) >= 1;
}

// Calls use(parameters) for every valid set.
template <class Use>
constexpr void for_each_set(const Use& use) {
    for (const auto& [bm, bn] : kBlockTiles)
        for (const int bk : kDepths)
            for (const auto& [wm, wn, tm, tn] : kWarpTiles)
                for (const int stages : kStages) {
                    const TileParameters parameters{bm, bn, bk, wm, wn, tm, tn, stages};
                    if (is_valid(parameters)) use(parameters);
                }
}

constexpr int number_of_sets() {
    int count = 0;
    for_each_set([&](const TileParameters&) { ++count; });
    return count;
}
static_assert(number_of_sets() == 132, "beyond/README.md and CMakeLists.txt name the number");

constexpr TileParameters set_at(int index) {
    TileParameters found{};
    for_each_set([&](const TileParameters& parameters) {
        if (index-- == 0) found = parameters;
    });
    return found;
}

// --- Their kernels -------------------------------------------------------------------------------

template <int INDEX>
struct SetOfSweep {
    static constexpr TileParameters P = set_at(INDEX);
    static_assert(is_valid(P), "SetOfSweep: the set must be one of the list");
    using T = course::TileShape<P.bm, P.bn, P.bk, P.wm, P.wn, P.tm, P.tn, P.stages>;
    static constexpr std::size_t SHARED = sizeof(Stage<T>) * T::STAGES;
    static_assert(SHARED == shared_bytes_of(P) && T::THREADS == threads_of(P),
                  "SetOfSweep: is_valid() must count as the kernel does");
    static constexpr auto KERNEL = sgemm_multi_stage<T, 4, blocks_of(P)>;

    static void launch(const Sgemm& gemm, cudaStream_t stream) {
        if (!rows_are_whole_packs(gemm)) {
            throw std::invalid_argument("sgemm: the sweep got rows of " + std::to_string(gemm.k()) + " and " +
                                        std::to_string(gemm.n()) +
                                        " floats; expected aligned rows of whole float4");
        }
        BlockPerTile<T::BM, T::BN, T::THREADS, KERNEL, KERNEL, SHARED>::launch(gemm, stream);
    }

    static SweptTile tile() {
        const auto text = [](int number) { return std::to_string(number); };
        return {.name = text(P.bm) + "x" + text(P.bn) + "x" + text(P.bk) + "_" + text(P.wm) + "x" +
                        text(P.wn) + "_" + text(P.tm) + "x" + text(P.tn) + "_" + text(P.stages),
                .kernel = {launch, BlockPerTile<T::BM, T::BN, T::THREADS, KERNEL, KERNEL, SHARED>::resources},
                .shared_bytes = SHARED};
    }
};

template <int FIRST, int STEP>
std::vector<SweptTile> part_of_sweep() {
    std::vector<SweptTile> tiles;
    if constexpr (FIRST < number_of_sets()) {
        tiles = part_of_sweep<FIRST + STEP, STEP>();
        tiles.insert(tiles.begin(), SetOfSweep<FIRST>::tile());
    }
    return tiles;
}

}  // namespace gemm
