// Day 11's program: every version verified and timed, beside a copy of the grid for each sweep (the
// bandwidth limit of one sweep at a time) and the CPU.
//
//     day11_stencil --size NXxNYxNZxSTEPS
//     day11_stencil --film DIRECTORY          frames of heat in a plate; scripts/make_film.py joins them
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "stencil.hpp"

namespace {

using day11::Extents;
using day11::Shape;
using day11::Stencil;

// Updates of a cell. With more of them, the bits of `basic` on the GPU are the reference, which the
// tests compare with the CPU: a CPU would take minutes.
constexpr double kMostOnCpu = 2e8;

struct Data {
    Data(Shape shape, const Extents& e, unsigned s)
        : stencil(day11::heat(shape)),
          extents(e),
          steps(s),
          in(course::make_data<float>(cells(e), course::DataPattern::kSignedUniform, 11)),
          on_cpu(is_small() ? in.size() : 0),
          in_device(std::span<const float>(in)),
          out_device(in.size()),
          spare_device(in.size()),
          copy(in.size()),
          of_basic(is_small() ? 0 : in.size()) {
        if (is_small()) {
            expected = day11::sweeps_on_cpu(stencil, extents, in, steps);
        } else {
            run(day11::versions(shape).front(), of_basic.span(), nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
        }
    }
    bool is_small() const { return static_cast<double>(cells(extents)) * steps <= kMostOnCpu; }

    // Each sweep adds at most a rounding for each point, of values no larger than the largest: the
    // coefficients are positive, and their sum is 1.
    course::VerifyResult verify(const std::vector<float>& got) const {
        return course::verify(got, expected, {.terms = steps * stencil.coefficient.size()});
    }
    course::VerifyResult verify_output() {
        if (is_small()) return verify(out_device.to_host());
        return course::verify_exact_on_device<float>(out_device.span(), of_basic.span());
    }
    void run(const day11::Version& version, course::DeviceSpan<float> out, cudaStream_t stream) {
        version.launcher(stencil, {in_device.span(), extents}, {out, extents}, {spare_device.span(), extents},
                         steps, stream);
    }

    Stencil stencil;
    Extents extents;
    unsigned steps;
    std::vector<float> in;
    std::vector<double> expected;
    std::vector<float> on_cpu;
    course::DeviceBuffer<float> in_device;
    course::GuardedBuffer<float> out_device;
    course::DeviceBuffer<float> spare_device;
    course::DeviceBuffer<float> copy;
    course::DeviceBuffer<float> of_basic;
};

course::Case make_case(Shape shape, const course::Dims& size) {
    course::require(size.size() == 4 && size[3] >= 1 && size[3] <= 1000000, "size has ", size.size(),
                    " numbers; expected four, nx x ny x nz x steps with 1 to 1000000 steps, for example "
                    "64x64x64x1");
    // The 5-point stencil takes one plane, the others need several. A long run is for the shapes
    // that have a version with several sweeps in a trip.
    const bool flat = shape == Shape::kCross5;
    const bool long_run = size[3] > 10 && (shape == Shape::kStar25 || shape == Shape::kBox27);
    if ((!flat && size[2] == 1) || long_run) return {};
    const Extents extents{size[0], size[1], flat ? 1 : size[2]};
    const auto steps = static_cast<unsigned>(size[3]);
    course::UsualCase<Data> usual(
        fmt::format("{} {}x{}x{}x{}", day11::name(shape), extents.nx, extents.ny, extents.nz, steps), "float",
        std::make_shared<Data>(shape, extents, steps));
    usual.output_in_place(&Data::out_device, [](Data& d) { return d.verify_output(); });
    usual.also_spoil([](Data& d) { std::ranges::fill(d.on_cpu, std::numeric_limits<float>::quiet_NaN()); });
    const day11::Problem problem{extents, steps};
    if (usual.data->is_small())
        usual.cpu(
            day11::versions(shape).front().work(problem),
            [](Data& d) { d.on_cpu = day11::exact_on_cpu(d.stencil, d.extents, d.in, d.steps); },
            [](const Data& d) { return d.verify(d.on_cpu); });
    usual.versions(day11::versions(shape), problem,
                   [](const day11::Version& version, Data& d, cudaStream_t stream) {
                       d.run(version, d.out_device.span(), stream);
                   });
    if (steps == 1) usual.limit_copy(&Data::in_device, &Data::copy);
    return usual.result;
}

course::Distribution sweeps_of(Shape shape) {
    return {.name = std::string(day11::name(shape)),
            .text = "one sweep of nx x ny x nz cells: any, cubes, odd, small",
            .most = std::size_t{1} << 27,
            .most_on_cpu = 1 << 18,
            .ours = {"any_grid"},
            .draw = [shape](course::Draw& draw) -> course::RandomProblem {
                const bool flat = shape == Shape::kCross5;
                const auto extent = [&](std::size_t most) {
                    return draw.jittered(draw.log_uniform(4, most));
                };
                const auto kind = draw.one_of<const char*>({"any", "cube", "odd", "small"});
                course::Dims size = {extent(4096), extent(4096), flat ? 1 : extent(1024)};
                if (kind == std::string("cube")) size = {size[0], size[0], flat ? 1 : size[0]};
                for (std::size_t& n : size)
                    if (n > 1 && kind == std::string("small")) n = std::min<std::size_t>(n, 64);
                if (kind == std::string("odd")) size = {size[0] | 1, size[1] | 1, flat ? 1 : size[2] | 1};
                size = draw.fitted(size);
                if (!flat) size[2] = std::max<std::size_t>(size[2], 2);
                size.push_back(1);
                return {kind, size, [shape, size] { return make_case(shape, size); }};
            },
            .beside = course::Role::kLimit};
}

// --- A film --------------------------------------------------------------------------------------

constexpr Extents kPlate{256, 112, 1};
constexpr int kFrames = 48;

// The plate at the start: cold, with four hot letters, and kept hot on its left edge.
std::vector<float> letters() {
    static const char* const kFont[] = {" ### #   # ####   ### ", "#    #   # #   # #   #",
                                        "#    #   # #   # #   #", "#    #   # #   # #####",
                                        "#    #   # #   # #   #", "#    #   # #   # #   #",
                                        " ###  ###  ####  #   #"};
    constexpr std::size_t kScale = 10;
    constexpr std::size_t kLeft = 18;
    constexpr std::size_t kTop = 21;
    std::vector<float> plate(cells(kPlate));
    for (std::size_t y = 0; y < kPlate.ny; ++y) {
        plate[y * kPlate.nx] = 1;
        for (std::size_t x = kLeft; y >= kTop && y < kTop + 7 * kScale && x < kLeft + 22 * kScale; ++x)
            plate[y * kPlate.nx + x] = kFont[(y - kTop) / kScale][(x - kLeft) / kScale] == '#' ? 1.0f : 0.0f;
    }
    return plate;
}

// Cold is dark blue, then purple, orange, yellow, white.
void write_frame(const std::filesystem::path& file, const std::vector<float>& plate) {
    static constexpr float kColours[5][3] = {
        {16, 20, 48}, {116, 28, 116}, {232, 92, 44}, {252, 200, 68}, {255, 252, 236}};
    std::ofstream out(file, std::ios::binary);
    out << "P6\n" << kPlate.nx << " " << kPlate.ny << "\n255\n";
    for (const float heat : plate) {
        // The square root shows what little there is.
        const float place = 4 * std::sqrt(std::clamp(heat, 0.0f, 1.0f));
        const int colour = std::min(static_cast<int>(place), 3);
        for (int i = 0; i < 3; ++i) {
            const float a = kColours[colour][i];
            const float b = kColours[colour + 1][i];
            out.put(static_cast<char>(
                static_cast<std::uint8_t>(a + (b - a) * (place - static_cast<float>(colour)))));
        }
    }
    course::require(static_cast<bool>(out.flush()), "--film: ", file.string(), " cannot be written");
}

// Frame i + 1 is i + 2 sweeps after frame i, by the fastest version.
void write_film(const std::string& directory) {
    course::require(std::filesystem::is_directory(directory), "--film ", directory, ": expected a directory");
    const Stencil stencil{Shape::kCross5, std::vector<float>(5, 0.2f)};
    std::vector<float> plate = letters();
    course::DeviceBuffer<float> in(plate.size());
    course::DeviceBuffer<float> out(plate.size());
    course::DeviceBuffer<float> spare(plate.size());
    for (int frame = 0; frame < kFrames; ++frame) {
        write_frame(std::filesystem::path(directory) / fmt::format("frame{:03}.ppm", frame), plate);
        in.copy_from(plate);
        day11::versions(Shape::kCross5)
            .back()
            .launcher(stencil, day11::DeviceGrid<float>(in.span(), kPlate), {out.span(), kPlate},
                      {spare.span(), kPlate}, static_cast<unsigned>(frame + 2), nullptr);
        plate = out.to_host();
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string film;
    course::Program program{.day = "day11_stencil",
                            .title = "sweeps of stencils over grids of nx x ny x nz floats",
                            .default_size = {96, 64, 32, 2},
                            .bench_sizes = {{512, 512, 512, 1},
                                            {1024, 1024, 1024, 1},
                                            {8192, 8192, 1, 100},
                                            {512, 512, 512, 100}},
                            .make_cases = {},
                            .add_options =
                                [&film](CLI::App& app, course::Program&) {
                                    app.add_option("--film", film,
                                                   "write frames of a film to this directory");
                                },
                            .finish =
                                [&film] {
                                    if (!film.empty()) write_film(film);
                                }};
    program.distributions = {sweeps_of(Shape::kStar7), sweeps_of(Shape::kStar25), sweeps_of(Shape::kBox27),
                             sweeps_of(Shape::kCross5)};
    for (const Shape shape : day11::kShapes)
        program.make_cases.push_back([shape](const course::Dims& size) { return make_case(shape, size); });
    return course::run_program(program, argc, argv);
}
