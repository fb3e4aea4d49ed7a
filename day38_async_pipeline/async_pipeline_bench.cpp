// Day 38's program: every version verified and timed beside cuBLAS; and the timeline of one block.
//
//     day38_async_pipeline [--size 4096x4096x4096] [--timeline FILE [--block N]]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "async_pipeline.hpp"
#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;

// What the command line asks for beside times.
struct Choice {
    std::string timeline;
    unsigned block = 0;
};

struct Data {
    explicit Data(day38::Shape s)
        : shape(s), product(s.rows * s.cols), magnitude(s.rows * s.cols), c_device(s.rows * s.cols) {
        const auto a = course::make_data<float>(s.rows * s.depth, DataPattern::kSignedUniform, 1);
        const auto b = course::make_data<float>(s.depth * s.cols, DataPattern::kSignedUniform, 2);
        a_device = DeviceBuffer<float>(std::span<const float>(a));
        b_device = DeviceBuffer<float>(std::span<const float>(b));
        day38::multiply_on_cpu(shape, a, b, product, magnitude);
    }

    DeviceMatrix<const float> a_view() const { return a_device.matrix(shape.rows, shape.depth); }
    DeviceMatrix<const float> b_view() const { return b_device.matrix(shape.depth, shape.cols); }
    DeviceMatrix<float> c_view() { return c_device.matrix(shape.rows, shape.cols); }

    day38::Shape shape;
    std::vector<double> product, magnitude;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

std::string problem_text(const course::Dims& size) {
    return fmt::format("matmul {}x{}x{}", size[0], size[1], size[2]);
}

std::shared_ptr<Data> make_data(const course::Dims& size) {
    if (size.size() != 3)
        throw std::invalid_argument(
            "expected rows x columns x depth of the product, for example 512x512x512");
    return std::make_shared<Data>(day38::Shape{size[0], size[1], size[2]});
}

course::Case make_case(const course::Dims& size) {
    const auto data = make_data(size);
    course::UsualCase<Data> usual(problem_text(size), "float", data);
    usual.output(&Data::c_device, [](const Data& d, const auto& c) {
        // The narrow bound: with the wide one, 2 eps K |A| |B|, a missing product would pass at K = 4096.
        return course::verify(c, d.product, {.terms = d.shape.depth, .growth = course::Growth::kSquareRoot},
                              d.magnitude, d.shape.cols);
    });
    usual.versions(day38::versions(), data->shape, [](const auto& version, Data& d, cudaStream_t stream) {
        version.launcher.launch(d.a_view(), d.b_view(), d.c_view(), stream);
    });
    usual.add({.name = "cublas",
               .role = course::Role::kPeer,
               .launch = course::make_cublas_sgemm(data->a_view(), data->b_view(), data->c_view()),
               .work = day38::versions().front().work(data->shape),
               .cannot_run = course::why_no_cublas()});
    return usual.result;
}

// {"problem", "block", "device", "clock", "versions": {name: [[warp, activity, tile, time], ...]}}.
// Times are relative to the version's first stamp.
void write_timelines(const course::Dims& size, const Choice& choice) {
    constexpr unsigned kMost = 300;  // stamps of a warp
    const auto data = make_data(size);
    nlohmann::ordered_json file{{"problem", problem_text(size)},
                                {"block", choice.block},
                                {"device", course::this_machine().device},
                                {"clock", course::is_cpu_stand_in() ? "nanoseconds" : "cycles"}};
    for (const day38::Pipeline& version : day38::versions()) {
        if (!version.cannot_run(data->shape).empty()) continue;
        const auto stamps =
            version.launcher.timeline(data->a_view(), data->b_view(), data->c_view(), choice.block, kMost);
        if (stamps.empty())
            throw std::invalid_argument(
                fmt::format("--block {}: {} has no such block", choice.block, version.name));
        const long long first = std::ranges::min(stamps, {}, &day38::Stamp::time).time;
        nlohmann::ordered_json& list = file["versions"][version.name];
        for (const day38::Stamp& stamp : stamps)
            list.push_back({stamp.warp, day38::name(stamp.activity), stamp.tile, stamp.time - first});
    }
    course::write_file(choice.timeline, file.dump() + "\n");
}

void add_options(CLI::App& app, course::Program& program, Choice& choice) {
    app.add_option("--timeline", choice.timeline,
                   "write what the warps of one block do when, as JSON (scripts/plot_timeline.py draws it)");
    app.add_option("--block", choice.block, "of which block")->capture_default_str();
    app.callback([&] {
        if (choice.timeline.empty()) return;
        const course::Dims size = app.count("--size") == 0
                                      ? program.default_size
                                      : course::parse_dims(app.get_option("--size")->as<std::string>());
        program.finish = [size, choice] { write_timelines(size, choice); };
    });
}

}  // namespace

int main(int argc, char** argv) {
    Choice choice;
    const course::Program program{
        .day = "day38_async_pipeline",
        .title = "C = A B, FP32, row-major; size: rows x columns x depth",
        .default_size = {256, 256, 256},
        .bench_sizes = {{256, 256, 256}, {1024, 1024, 1024}, {4096, 4096, 4096}, {3001, 1000, 2003}},
        .make_cases = {make_case},
        .add_options = [&](CLI::App& app, course::Program& own) { add_options(app, own, choice); }};
    return course::run_program(program, argc, argv);
}
