// Step 14: the tile that suits the shape.
//
// Change:     seven tiles, two ways each, and a table of what they cost on this GPU; and kernels
//             for thin products and for a short K.
// Why:        no tile suits all shapes: with 128 x 256, most of the tile is out of range if C has
//             100 columns.
// Prediction: on large squares the speed of step 12, and in addition what its last wave lost.
// Counter:    time of each shape beside cuBLAS (./course bench gemm_ladder --sweep).
// Measured:   large squares with aligned rows: a few percent to a sixth faster than cuBLAS. Small
//             products whose rows are not aligned: cuBLAS is ahead.
// Limit:      at 4096^3 the multiply-adds of step 12 (counters: FMA 82 % busy).
// Next:       the multiply-adds of CUDA cores; for small shapes, the launch and the prologue.
//
// This file is host code. For each tile and each of the two ways (step 12: a block for each tile;
// step 13: equal shares) it predicts the time from the table that the tuner has measured (tune/),
// and takes the least. The prediction considers how full the last wave of blocks is, how much of
// the edge tiles is out of range, and for small products the launch, the prologue and the fix-up.
//
// The number of SMs, and the number of blocks that each of them can run, come from the device: an
// SM of a consumer card has 100 KB of shared memory, an H200's 228. On a GPU that is not Hopper,
// the time of a step follows from its clock and its FP32 lanes: an estimate, which `./course tune`
// replaces by a table of that GPU (cost_table.hpp).
//
// A C of a few rows or columns would leave most of any tile empty. Such a product is memory-bound,
// and a kernel without tiles runs (thin.cu). With a short K, the stores of C are the limit
// (shallow.cu).
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "beyond.hpp"
#include "cost_table.hpp"
#include "launch.hpp"
#include "shallow.hpp"
#include "thin.hpp"
#include "tiles.hpp"

namespace gemm {
namespace {

// Predictions are no more accurate than that. They do not model the L2 cache, and a larger tile
// loads less: among choices predicted to be about as fast, it is preferred.
constexpr double kDoubt = 1.02;

const TileCost& cost_of(const CostTable& table, const TileKernels& tile, bool aligned) {
    const auto found = std::ranges::find_if(
        table.costs, [&](const TileCost& cost) { return cost.name == tile.name && cost.aligned == aligned; });
    const auto measured = [&](const std::array<double, kMostBlocks>& costs) {
        return std::all_of(costs.begin(), costs.begin() + tile.most_blocks,
                           [](double cost) { return cost > 0; });
    };
    if (found == table.costs.end() || !measured(found->whole_step) || !measured(found->whole) ||
        !measured(found->shared_step) || !measured(found->shared) || found->owner < 0) {
        throw std::logic_error("dispatcher: the table of costs lacks costs of tile " +
                               std::string(tile.name) + "; expected that gemm_ladder_tune has written it");
    }
    return *found;
}

struct Work {
    double tiles;
    double steps;  // of BK columns along K, of each tile
};

Work work_of(const TileKernels& tile, const Shape& shape) {
    const auto pieces = [](std::size_t extent, int size) {
        return static_cast<double>(course::ceil_div(extent, static_cast<std::size_t>(size)));
    };
    return {pieces(shape.m, tile.bm) * pieces(shape.n, tile.bn), std::max(pieces(shape.k, tile.bk), 1.0)};
}

// FP32 multiply-adds of an SM in a cycle (CUDA C++ Programming Guide, arithmetic instructions).
double fp32_lanes(int capability) {
    return capability <= 80 ? 64 : 128;
}

// The time of a step on `gpu` when `blocks` blocks run on each SM and the table has `measured`. On
// another kind of GPU than the table's, a step takes as many cycles, or more if its multiply-adds
// do.
double step_time(const CostTable& table, const Gpu& gpu, const TileKernels& tile, std::size_t blocks,
                 double measured) {
    if (gpu.capability == table.capability) return measured;
    const int clock_khz = gpu.clock_khz > 0 ? gpu.clock_khz : table.clock_khz;
    const double cycles_per_microsecond = clock_khz / 1000.0;
    const double multiply_adds =
        static_cast<double>(blocks) * tile.bm * tile.bn * tile.bk / fp32_lanes(gpu.capability);
    return std::max(measured * table.clock_khz / 1000, multiply_adds) / cycles_per_microsecond;
}

// The costs of a tile on `gpu`.
TileCost cost_on(const CostTable& table, const Gpu& gpu, const TileKernels& tile, bool aligned) {
    TileCost cost = cost_of(table, tile, aligned);
    for (std::size_t i = 0; i < kMostBlocks; ++i) {
        cost.whole_step[i] = step_time(table, gpu, tile, i + 1, cost.whole_step[i]);
        cost.shared_step[i] = step_time(table, gpu, tile, i + 1, cost.shared_step[i]);
    }
    return cost;
}

// A block for each tile: full waves of blocks, then a last one with fewer blocks per SM.
double time_of_whole(const TileCost& cost, const Work& work, int most_blocks, double multiprocessors) {
    const double at_once = most_blocks * multiprocessors;
    const double full_waves = std::floor(work.tiles / at_once);
    const auto full = static_cast<std::size_t>(most_blocks);
    const double in_last = std::clamp(work.tiles - full_waves * at_once, 0.0, at_once);
    const std::size_t last = std::min(static_cast<std::size_t>(std::ceil(in_last / multiprocessors)), full);
    double time = full_waves * work.steps * cost.whole_step[full - 1];
    if (last > 0) time += work.steps * cost.whole_step[last - 1];
    return time + cost.whole[(last > 0 && full_waves == 0 ? last : full) - 1];
}

// Equal shares for `blocks` blocks per SM.
double time_of_shared(const TileCost& cost, const Work& work, std::size_t blocks, double multiprocessors) {
    const double share = std::ceil(work.tiles * work.steps / (static_cast<double>(blocks) * multiprocessors));
    const double owners = static_cast<double>(blocks) * multiprocessors / work.tiles;
    return share * cost.shared_step[blocks - 1] + cost.shared[blocks - 1] +
           cost.owner * std::max(owners, 1.0);
}

// Enough for aligned and for unaligned rows.
ScratchSize scratch_of(const Shape& shape) {
    if (is_worth_a_thin_kernel(shape)) return thin_scratch(shape, thin_blocks());
    if (is_worth_a_shallow_kernel(shape)) return {};
    ScratchSize most;
    for (const bool aligned : {false, true}) {
        const Choice choice = choose(shape, aligned, current_gpu(), costs_of_current_gpu());
        if (choice.shared_by == 0) continue;
        const ScratchSize size = choice.tile->shared.scratch(shape);
        most = {std::max(most.partial, size.partial), std::max(most.tickets, size.tickets)};
    }
    return most;
}

void launch(const Sgemm& gemm, cudaStream_t stream) {
    const Shape shape{gemm.m(), gemm.n(), gemm.k()};
    if (is_worth_a_thin_kernel(shape)) return launch_thin(thin_blocks(), gemm, stream);
    if (is_worth_a_shallow_kernel(shape)) return launch_shallow(gemm, stream);
    const Choice choice = choose(shape, rows_are_whole_packs(gemm), current_gpu(), costs_of_current_gpu());
    if (choice.shared_by == 0) {
        choice.tile->whole.launch(gemm, stream);
    } else {
        choice.tile->launch_shared_on(choice.shared_by, gemm, stream);
    }
}

// Of the kernel for large squares: which kernel runs depends on the shape.
course::KernelResources resources() {
    const Choice choice = choose({4096, 4096, 4096}, true, current_gpu(), costs_of_current_gpu());
    return choice.shared_by == 0 ? choice.tile->whole.resources() : choice.tile->shared.resources();
}

}  // namespace

std::span<const TileKernels> tiles() {
    static const std::vector<TileKernels> list = [] {
        std::vector<TileKernels> all = large_tiles();
        std::ranges::copy(small_tiles(), std::back_inserter(all));
        return all;
    }();
    return list;
}

Gpu current_gpu() {
    // Querying all properties takes milliseconds; querying only the number of multiprocessors is
    // free.
    static std::mutex mutex;
    static std::map<int, Gpu> known;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const std::scoped_lock lock(mutex);
    if (!known.contains(device)) {
        cudaDeviceProp properties{};
        int clock_khz = 0;
        CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
        CUDA_CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device));
        known[device] = {.capability = properties.major * 10 + properties.minor,
                         .clock_khz = clock_khz,
                         .limits = course::limits_of(properties)};
    }
    Gpu gpu = known[device];
    gpu.multiprocessors = course::multiprocessors();
    return gpu;
}

// Registers are not counted: all GPUs have as many, and the tile's launch bounds see to them.
int resident_blocks(const TileKernels& tile, const Gpu& gpu) {
    const course::BlockNeeds needs{.threads = tile.threads, .shared_bytes = tile.shared_bytes};
    return std::min(tile.most_blocks, course::blocks_at_once(needs, gpu.limits));
}

Choice choose(const Shape& shape, bool aligned, const Gpu& gpu) {
    return choose(shape, aligned, gpu, shipped_costs());
}

Choice choose(const Shape& shape, bool aligned, const Gpu& gpu, const CostTable& table) {
    if (gpu.multiprocessors == 0)
        throw std::invalid_argument("choose: multiprocessors is 0; expected at least 1");
    std::vector<Choice> choices;
    for (const TileKernels& tile : tiles()) {
        const int most_blocks = resident_blocks(tile, gpu);
        if (most_blocks == 0) continue;
        const TileCost cost = cost_on(table, gpu, tile, aligned);
        const Work work = work_of(tile, shape);
        choices.push_back({&tile, 0, time_of_whole(cost, work, most_blocks, gpu.multiprocessors)});
        for (int blocks = 1; blocks <= most_blocks; ++blocks) {
            choices.push_back(
                {&tile, static_cast<unsigned>(blocks) * gpu.multiprocessors,
                 time_of_shared(cost, work, static_cast<std::size_t>(blocks), gpu.multiprocessors)});
        }
    }
    if (choices.empty()) {
        throw std::invalid_argument("choose: a block has " +
                                    std::to_string(gpu.limits.shared_bytes_of_block) +
                                    " bytes of shared memory; expected enough for one of the tiles");
    }
    const double least = std::ranges::min(choices, {}, &Choice::microseconds).microseconds;
    std::erase_if(choices, [&](const Choice& choice) { return choice.microseconds > least * kDoubt; });
    return std::ranges::min(choices, {}, [](const Choice& choice) {
        return std::pair(-choice.tile->bm * choice.tile->bn, choice.microseconds);
    });
}

Kernel dispatcher() {
    return {launch, resources, scratch_of};
}

}  // namespace gemm
