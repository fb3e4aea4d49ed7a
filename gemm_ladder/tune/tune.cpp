// Measures what the dispatcher (step 14) must know of each tile on the GPU at hand, and writes the
// table that it reads.
//
//     gemm_ladder_tune --table gemm_ladder/tune/h200.inc
//
// For each tile, with 1, 2, ... blocks on each multiprocessor: C has as many tiles as there are
// blocks, so all of them run at the same time. Two lengths of K give the time of a step and what a
// tile costs beside its steps. Three quarters as many tiles, shared by the same blocks, give the
// same for equal shares; a single tile with the same shares, what it costs that many blocks add up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

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
    course::RepeatLimits limits;
    if (course::is_cpu_stand_in()) limits = {.min_repeats = 3, .max_repeats = 3, .max_seconds = 0.01};
    return course::measure_warm(
               "tile", [&](cudaStream_t stream) { launch(gemm, stream); }, limits)
               .ms.median *
           1000;
}

std::string list(const std::vector<double>& values) {
    return fmt::format("{{{:.4f}}}", fmt::join(values, ", "));
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

std::string costs_of(const TileKernels& tile, bool aligned) {
    std::vector<double> whole_step;
    std::vector<double> whole;
    std::vector<double> shared_step;
    std::vector<double> shared;
    for (std::size_t blocks = 1; blocks <= static_cast<std::size_t>(tile.most_blocks); ++blocks) {
        const std::size_t at_once = blocks * course::multiprocessors();
        const auto time_of_whole = [&](int steps) {
            return time_of(shape_of(tile, at_once, steps), aligned, {}, tile.whole.launch);
        };
        const Line whole_line(kShortSteps, time_of_whole(kShortSteps), kLongSteps, time_of_whole(kLongSteps));
        whole_step.push_back(whole_line.step);
        whole.push_back(whole_line.begin);

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
        shared_step.push_back(shared_line.step);
        shared.push_back(shared_line.begin);
    }
    const double owner = owner_cost(tile, aligned);
    for (const auto* const costs : {&whole_step, &whole, &shared_step, &shared}) {
        if (!course::is_cpu_stand_in() && std::ranges::min(*costs) <= 0) {
            throw std::runtime_error(fmt::format(
                "tile {} costs {} microseconds; expected more than 0. Is the GPU busy? Run it again",
                tile.name, std::ranges::min(*costs)));
        }
    }
    return fmt::format("{{\"{}\", {}, {}, {}, {}, {}, {:.4f}}},\n", tile.name, aligned, list(whole_step),
                       list(whole), list(shared_step), list(shared), owner);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Measures the tiles of step 14 on this GPU and writes the table of their costs.");
    std::string path;
    app.add_option("--table", path, "file to write; without it the table is printed");
    CLI11_PARSE(app, argc, argv);
    try {
        if (course::is_cpu_stand_in() && !path.empty())
            throw std::runtime_error(
                "--table needs a GPU: the times of the CPU stand-in say nothing about one");
        const course::Machine machine = course::this_machine();
        std::string table = fmt::format(
            "// {}, driver {}, CUDA {}. Written by gemm_ladder_tune: tile, aligned rows, and in "
            "microseconds, with 1, 2, ...\n"
            "// blocks on each multiprocessor: a step of a whole tile, the rest of it; a step of an equal "
            "share, the rest; each owner of a tile.\n",
            machine.device, machine.driver, machine.cuda);
        for (const bool aligned : {true, false}) {
            for (const TileKernels& tile : gemm::tiles())
                table += costs_of(tile, aligned);
        }
        if (path.empty()) {
            fmt::print("{}", table);
        } else {
            course::write_file(path, table);
            const gemm::Gpu gpu = gemm::current_gpu();
            fmt::print(
                "written: {}; it is part of the program. In gemm_ladder/beyond/14_dispatcher.cu, write "
                "kTableCapability = {} and kTableClockKhz = {}, and build it again\n",
                path, gpu.capability, gpu.clock_khz);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "gemm_ladder_tune: {}\n", error.what());
        return 1;
    }
}
