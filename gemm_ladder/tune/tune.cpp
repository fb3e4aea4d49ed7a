// Measures what the dispatcher (step 14) must know of each tile on the GPU at hand, and writes the
// table that it reads.
//
//     ./course tune                                          for this machine (cost_table.hpp)
//     gemm_ladder_tune --table gemm_ladder/tune/h200.inc     the one that ships
//
// For each tile, with 1, 2, ... blocks on each multiprocessor: C has as many tiles as there are
// blocks, so all of them run at the same time. Two lengths of K give the time of a step and what a
// tile costs beside its steps. Three quarters as many tiles, shared by the same blocks, give the
// same for equal shares; a single tile with the same shares, what it costs that many blocks add up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../beyond/cost_table.hpp"
#include "../beyond/tiles.hpp"
#include "../scratch.hpp"
#include "common/bench/benchmark.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/report.hpp"
#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using gemm::Shape;
using gemm::TileKernels;

constexpr int kShortSteps = 64;
constexpr int kLongSteps = 640;

// A C of `tiles` tiles, as square as their number allows.
Shape shape_of(const TileKernels& tile, std::size_t tiles, int steps) {
    auto across = static_cast<std::size_t>(std::sqrt(static_cast<double>(tiles)));
    while (tiles % across != 0)
        --across;
    return {tiles / across * static_cast<std::size_t>(tile.bm), across * static_cast<std::size_t>(tile.bn),
            static_cast<std::size_t>(steps * tile.bk)};
}

// Microseconds of one launch.
double time_of(const Shape& shape, bool aligned, const gemm::ScratchSize& scratch_size,
               const std::function<void(const gemm::Sgemm&, cudaStream_t)>& launch) {
    const std::size_t padding = aligned ? 0 : 1;  // after each row
    const auto a = course::make_data<float>(shape.m * (shape.k + padding), DataPattern::kSignedUniform, 1);
    const auto b = course::make_data<float>(shape.k * (shape.n + padding), DataPattern::kSignedUniform, 2);
    const DeviceBuffer<float> a_device{std::span(a)};
    const DeviceBuffer<float> b_device{std::span(b)};
    DeviceBuffer<float> c_device(shape.m * (shape.n + padding));
    gemm::ScratchMemory scratch(scratch_size);
    const gemm::Sgemm gemm{.a = {a_device.span(), shape.m, shape.k, shape.k + padding},
                           .b = {b_device.span(), shape.k, shape.n, shape.n + padding},
                           .c = {c_device.span(), shape.m, shape.n, shape.n + padding},
                           .scratch = scratch.view()};
    course::RepeatLimits limits{.max_seconds = 0.1};
    if (course::is_cpu_stand_in()) limits = {.min_repeats = 3, .max_repeats = 3, .max_seconds = 0.01};
    return course::measure_warm(
               "tile", [&](cudaStream_t stream) { launch(gemm, stream); }, limits)
               .ms.median *
           1000;
}

// The costs with 1, 2, ... `blocks` blocks, as C++.
std::string list(const std::array<double, gemm::kMostBlocks>& costs, int blocks) {
    return fmt::format("{{{:.4f}}}",
                       fmt::join(std::span(costs).first(static_cast<std::size_t>(blocks)), ", "));
}

// Time as a straight line over the number of steps: what it begins with, and what each step adds.
struct Line {
    double begin;
    double step;

    Line(double short_steps, double short_time, double long_steps, double long_time)
        : begin(0), step((long_time - short_time) / (long_steps - short_steps)) {
        begin = short_time - short_steps * step;
    }
};

// One block on each multiprocessor: `tiles` tiles, and as many steps for each block whatever their
// number.
double time_of_shares(const TileKernels& tile, bool aligned, std::size_t tiles) {
    const unsigned blocks = course::multiprocessors();
    const Shape shape = shape_of(tile, tiles, static_cast<int>(kShortSteps * blocks / tiles));
    return time_of(
        shape, aligned, tile.shared.scratch(shape),
        [&](const gemm::Sgemm& gemm, cudaStream_t stream) { tile.launch_shared_on(blocks, gemm, stream); });
}

// What each further block costs that shares a tile: all of them share one, against two that share
// each. 0 where the difference drowns in what else is different: one tile has a longer K, and the
// same elements of A and B are not read twice.
double owner_cost(const TileKernels& tile, bool aligned) {
    const std::size_t blocks = course::multiprocessors();
    const std::size_t tiles = std::max<std::size_t>(blocks / 2, 1);
    const double more = time_of_shares(tile, aligned, 1) - time_of_shares(tile, aligned, tiles);
    const auto further = static_cast<double>(std::max<std::size_t>(blocks - blocks / tiles, 1));
    return std::max(more, 0.0) / further;
}

gemm::TileCost costs_of(const TileKernels& tile, bool aligned) {
    gemm::TileCost costs{.name = tile.name,
                         .aligned = aligned,
                         .whole_step = {},
                         .whole = {},
                         .shared_step = {},
                         .shared = {},
                         .owner = owner_cost(tile, aligned)};
    for (std::size_t blocks = 1; blocks <= static_cast<std::size_t>(tile.most_blocks); ++blocks) {
        const std::size_t at_once = blocks * course::multiprocessors();
        const auto time_of_whole = [&](int steps) {
            return time_of(shape_of(tile, at_once, steps), aligned, {}, tile.whole.launch);
        };
        const Line whole_line(kShortSteps, time_of_whole(kShortSteps), kLongSteps, time_of_whole(kLongSteps));
        costs.whole_step[blocks - 1] = whole_line.step;
        costs.whole[blocks - 1] = whole_line.begin;

        const std::size_t tiles = std::max<std::size_t>(at_once * 3 / 4, 1);
        const auto time_of_shared = [&](int steps) {
            const Shape shape = shape_of(tile, tiles, steps);
            return time_of(shape, aligned, tile.shared.scratch(shape),
                           [&](const gemm::Sgemm& gemm, cudaStream_t stream) {
                               tile.launch_shared_on(static_cast<unsigned>(at_once), gemm, stream);
                           });
        };
        const double share = static_cast<double>(tiles) / static_cast<double>(at_once);
        const Line shared_line(share * kShortSteps, time_of_shared(kShortSteps), share * kLongSteps,
                               time_of_shared(kLongSteps));
        costs.shared_step[blocks - 1] = shared_line.step;
        costs.shared[blocks - 1] = shared_line.begin;

        const double least =
            std::min({whole_line.step, whole_line.begin, shared_line.step, shared_line.begin});
        if (!course::is_cpu_stand_in() && least <= 0) {
            throw std::runtime_error(fmt::format(
                "tile {} costs {} microseconds; expected more than 0. Is the GPU busy? Run it again",
                tile.name, least));
        }
    }
    return costs;
}

// A line of the table that ships.
std::string as_source(const TileKernels& tile, const gemm::TileCost& cost) {
    const auto text = [&](const auto& costs) { return list(costs, tile.most_blocks); };
    return fmt::format("{{\"{}\", {}, {}, {}, {}, {}, {:.4f}}},\n", cost.name, cost.aligned,
                       text(cost.whole_step), text(cost.whole), text(cost.shared_step), text(cost.shared),
                       cost.owner);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Measures the tiles of step 14 on this GPU and writes the table of their costs.");
    std::string path;
    std::string json;
    app.add_option("--table", path, "file to write, as C++; without it and --json the table is printed");
    app.add_option("--json", json, "file to write, which programs read when they start: ./course tune");
    CLI11_PARSE(app, argc, argv);
    try {
        if (course::is_cpu_stand_in() && !(path.empty() && json.empty()))
            throw std::runtime_error(
                "--table and --json need a GPU: the times of the CPU stand-in say nothing about one");
        const course::Machine machine = course::this_machine();
        const gemm::Gpu gpu = gemm::current_gpu();
        gemm::CostTable costs{
            .device = machine.device, .capability = gpu.capability, .clock_khz = gpu.clock_khz, .costs = {}};
        std::string table = fmt::format(
            "// {}, driver {}, CUDA {}. Written by gemm_ladder_tune: tile, aligned rows, and in "
            "microseconds, with 1, 2, ...\n"
            "// blocks on each multiprocessor: a step of a whole tile, the rest of it; a step of an equal "
            "share, the rest; each owner of a tile.\n",
            machine.device, machine.driver, machine.cuda);
        for (const bool aligned : {true, false}) {
            for (const TileKernels& tile : gemm::tiles()) {
                fmt::print(stderr, "{}, rows {}\n", tile.name, aligned ? "aligned" : "not aligned");
                costs.costs.push_back(costs_of(tile, aligned));
                table += as_source(tile, costs.costs.back());
            }
        }
        if (path.empty() && json.empty()) fmt::print("{}", table);
        if (!json.empty()) {
            course::write_file(json, gemm::to_json_lines(costs));
            fmt::print("written: {}; the dispatcher uses it on {}\n", json, machine.device);
        }
        if (!path.empty()) {
            course::write_file(path, table);
            fmt::print(
                "written: {}; it is part of the program. In gemm_ladder/beyond/cost_table.cpp, write the "
                "device "
                "{}, capability {} and clock_khz {}, and build it again\n",
                path, machine.device, gpu.capability, gpu.clock_khz);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "gemm_ladder_tune: {}\n", error.what());
        return 1;
    }
}
