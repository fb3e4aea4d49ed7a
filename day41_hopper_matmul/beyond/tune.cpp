// Measures the tiles that `fitted` chooses from on the GPU at hand, and writes the table that it
// reads (tile_table.hpp).
//
//     ./course tune
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/tile_table.hpp"
#include "common/bench/benchmark.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/report.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"

namespace {

using T = __nv_bfloat16;

// Random elements, because the power that a product takes depends on them. A part is repeated, to
// save time.
course::DeviceBuffer<T> random_elements(std::size_t count, std::uint64_t seed) {
    const auto part = course::make_data<T>(std::min(count, std::size_t{1} << 22),
                                           course::DataPattern::kSignedUniform, seed);
    course::DeviceBuffer<T> elements(count);
    for (std::size_t first = 0; first < count; first += part.size())
        CUDA_CHECK(cudaMemcpy(elements.data() + first, part.data(),
                              std::min(part.size(), count - first) * sizeof(T), cudaMemcpyHostToDevice));
    return elements;
}

double microseconds(const day41::Candidate& candidate, const day41::Shape& shape) {
    const course::DeviceBuffer<T> a = random_elements(shape.m * shape.k, 1);
    const course::DeviceBuffer<T> b = random_elements(shape.k * shape.n, 2);
    course::DeviceBuffer<float> c(shape.m * shape.n);
    const day41::Gemm<T> gemm{
        .a = a.matrix(shape.m, shape.k), .b = b.matrix(shape.k, shape.n), .c = c.matrix(shape.m, shape.n)};
    const auto launch = [&](cudaStream_t stream) {
        candidate.version.launcher.bfloat16.launch(gemm, stream);
    };
    return course::measure_warm("tile", launch, {.max_seconds = 0.1}).ms.median * 1000;
}

day41::TileTimes measured(const day41::Candidate& candidate) {
    std::vector<day41::TimeOfShape> times;
    for (const day41::Shape& shape : day41::shapes_to_measure(candidate.tiling, course::multiprocessors()))
        times.push_back({shape, microseconds(candidate, shape)});
    const course::Tiling fitted = day41::fitted_to(candidate.tiling, times, course::multiprocessors());
    return {.tile = candidate.version.name,
            .launch = fitted.launch,
            .start = fitted.tile,
            .step = fitted.step,
            .load = fitted.load};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Measures the tiles of day 41 on this GPU and writes the table of their costs.");
    std::string json;
    app.add_option("--json", json, "file to write, which programs read when they start: ./course tune");
    CLI11_PARSE(app, argc, argv);
    try {
        if (course::is_cpu_stand_in())
            throw std::runtime_error("this needs a GPU: the times of the CPU stand-in say nothing about one");
        if (const std::string reason = day41::candidates().front().version.cannot_run({}); !reason.empty()) {
            fmt::print("tiles of day 41 are not measured: {}\n", reason);
            return 0;
        }
        day41::TileTable table{.device = course::this_machine().device, .times = {}};
        for (const day41::Candidate& candidate : day41::candidates()) {
            fmt::print(stderr, "{}\n", candidate.version.name);
            table.times.push_back(measured(candidate));
        }
        if (json.empty()) {
            fmt::print("{}", to_json_lines(table));
        } else {
            course::write_file(json, to_json_lines(table));
            fmt::print("written: {}; day 41's fitted and realigned use it on {}\n", json, table.device);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "day41_hopper_matmul_tune: {}\n", error.what());
        return 1;
    }
}
