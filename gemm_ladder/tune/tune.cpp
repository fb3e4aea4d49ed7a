// Measures what the dispatcher (step 14) must know of each tile on the GPU at hand, and writes the table that it reads.
//
//     gemm_ladder_tune --table gemm_ladder/tune/h200.inc
//
// For each tile, with 1, 2, ... blocks on each multiprocessor: C has as many tiles as there are blocks, so all of them run at the
// same time. Two lengths of K give the time of a step and what a tile costs beside its steps; three quarters as many tiles, shared by
// the same blocks, give what sharing costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../beyond/tiles.hpp"
#include "../scratch.hpp"
#include "common/benchmark.hpp"
#include "common/check.hpp"
#include "common/data_pattern.hpp"
#include "common/device_buffer.hpp"
#include "common/machine.hpp"
#include "common/report.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using gemm::Shape;
using gemm::TileKernels;

constexpr int kShortSteps = 64;
constexpr int kLongSteps = 320;

std::size_t multiprocessors() {
    int device = 0;
    int count = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<std::size_t>(count);
}

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

std::string costs_of(const TileKernels& tile, bool aligned) {
    std::vector<double> step;
    std::vector<double> whole;
    std::vector<double> shared;
    for (std::size_t blocks = 1; blocks <= static_cast<std::size_t>(tile.most_blocks); ++blocks) {
        const std::size_t tiles = blocks * multiprocessors();
        const double brief = time_of(shape_of(tile, tiles, kShortSteps), aligned, {}, tile.whole.launch);
        const double lengthy = time_of(shape_of(tile, tiles, kLongSteps), aligned, {}, tile.whole.launch);
        step.push_back((lengthy - brief) / (kLongSteps - kShortSteps));
        whole.push_back(brief - kShortSteps * step.back());

        const std::size_t fewer = std::max<std::size_t>(tiles * 3 / 4, 1);
        const Shape shape = shape_of(tile, fewer, kShortSteps);
        const double together = time_of(shape, aligned, tile.shared.scratch(shape),
                                        [&](const gemm::Sgemm& gemm, cudaStream_t stream) {
                                            tile.launch_shared_on(static_cast<unsigned>(tiles), gemm, stream);
                                        });
        const double share = static_cast<double>(fewer) * kShortSteps / static_cast<double>(tiles);
        shared.push_back(together - share * step.back());
    }
    return fmt::format("{{\"{}\", {}, {}, {}, {}}},\n", tile.name, aligned, list(step), list(whole),
                       list(shared));
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Measures the tiles of step 14 on this GPU and writes the table of their costs.");
    std::string path;
    app.add_option("--table", path, "file to write; without it the table is printed");
    CLI11_PARSE(app, argc, argv);
    try {
        const course::Machine machine = course::this_machine();
        std::string table = fmt::format(
            "// {}, driver {}, CUDA {}: microseconds of a step, of a tile beside its steps, and of sharing, "
            "with 1, 2, "
            "... blocks\n// on each multiprocessor. Written by gemm_ladder_tune.\n",
            machine.device, machine.driver, machine.cuda);
        for (const bool aligned : {true, false}) {
            for (const TileKernels& tile : gemm::tiles())
                table += costs_of(tile, aligned);
        }
        if (path.empty()) {
            fmt::print("{}", table);
        } else {
            course::write_file(path, table);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "gemm_ladder_tune: {}\n", error.what());
        return 1;
    }
}
