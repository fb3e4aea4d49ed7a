// Day 33's program. A size is a number of pictures, N: a training step of LeNet-5 with that batch;
// or N x C x H x W x window x stride: max-pooling with a padding of (window - 1) / 2.
//
//     day33_lenet_training --size 64
//     day33_lenet_training --train DIRECTORY     LeNet-5 learns to read; make_training_picture.py draws how

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "digits.hpp"
#include "lenet_training.hpp"
#include "pooling.hpp"

namespace {

using day33::Digits;
using day33::draw_digits;
using day33::kDigitSide;
using day33::LeNet;

struct Training {
    std::string directory;  // for its results; empty: no training
    int steps = 3000;
};

// `values` as lines of `columns` numbers.
void write_csv(const std::filesystem::path& file, std::span<const float> values, std::size_t columns) {
    std::ofstream out(file);
    for (std::size_t i = 0; i < values.size(); ++i)
        out << values[i] << ((i + 1) % columns == 0 ? '\n' : ',');
    course::require(static_cast<bool>(out.flush()), "--train: ", file.string(), " cannot be written");
}

// Trains on 60,000 drawn digits, 64 in each step, and prints the loss and the accuracy on 10,000
// others.
void train(const Training& training) {
    if (training.directory.empty()) return;
    course::require(training.steps >= 1, "--steps is ", training.steps, "; expected at least 1");
    course::require(std::filesystem::is_directory(training.directory), "--train ", training.directory,
                    ": expected a directory");
    // The CPU stand-in takes a second for a few steps: fewer pictures there.
    const bool on_cpu = course::is_cpu_stand_in();
    const Digits known = draw_digits(on_cpu ? 6400 : 60000, 1);
    const Digits unknown = draw_digits(on_cpu ? 640 : 10000, 2);
    constexpr int kBatch = 64;
    LeNet net(kBatch, known, 3);

    const int report = std::max(1, training.steps / 100);
    std::vector<float> curve;  // step, loss
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < training.steps; ++step) {
        net.step(nullptr);
        if (step % report != 0 && step + 1 != training.steps) continue;
        curve.push_back(static_cast<float>(step));
        curve.push_back(static_cast<float>(net.loss()));
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("LeNet-5: {} steps of {} pictures in {:.2f} s, loss {:.3f}, then {:.4f}; accuracy {:.2f} %\n",
               training.steps, kBatch, seconds, curve[1], curve.back(), 100 * net.accuracy(unknown));

    const std::filesystem::path directory(training.directory);
    write_csv(directory / "loss.csv", curve, 2);
    write_csv(directory / "filters.csv", net.first_filters(), 25);
    constexpr std::size_t kShown = 20;
    write_csv(directory / "digits.csv",
              std::span(unknown.pictures).first(kShown * std::size_t{kDigitSide * kDigitSide}),
              std::size_t{kDigitSide * kDigitSide});
}

// How a timed network ends depends on how many steps were timed, and few pictures may make it
// diverge; its loss must be a number. A new one must go the way of the other version's kernels for
// a few steps. Their sums are in another order: the tolerance is that of lenet_training_test.cpp.
course::VerifyResult verify(const LeNet& timed, int batch, const Digits& digits, LeNet::Kernels kernels) {
    constexpr int kSteps = 3;
    constexpr double kTolerance = 1e-4;
    const bool of_layers = kernels == LeNet::Kernels::kOfLayers;
    LeNet again(batch, digits, 3, kernels);
    LeNet other(batch, digits, 3, of_layers ? LeNet::Kernels::kOfPictures : LeNet::Kernels::kOfLayers);
    for (int step = 0; step < kSteps; ++step) {
        again.step(nullptr);
        other.step(nullptr);
    }
    course::VerifyResult verified;
    const auto expect = [&](bool right, const std::string& expected, double got) {
        if (!right) verified.first.push_back({verified.compared, expected, fmt::format("{}", got), ""});
        ++verified.compared;
        verified.differing = verified.first.size();
    };
    expect(std::isfinite(timed.loss()), "a finite loss of the timed network", timed.loss());
    expect(std::abs(again.loss() - other.loss()) <= kTolerance,
           fmt::format("a loss of {} after {} steps", other.loss(), kSteps), again.loss());
    return verified;
}

course::Case training_case(const course::Dims& size) {
    if (size.size() != 1) return {};
    course::require(size[0] <= 32768, "size is ", size[0], " pictures; expected at most 32768");
    const int batch = static_cast<int>(size[0]);
    course::Case result{.problem = fmt::format("lenet_step {}", batch), .dtype = "float"};
    const auto digits = std::make_shared<const Digits>(draw_digits(static_cast<std::size_t>(4 * batch), 1));
    const auto add = [&](const char* name, LeNet::Kernels kernels) {
        const auto net = std::make_shared<LeNet>(batch, *digits, 3, kernels);
        result.contestants.push_back({.name = name,
                                      .launch = [net](cudaStream_t stream) { net->step(stream); },
                                      .verify = [=] { return verify(*net, batch, *digits, kernels); }});
    };
    add("layers", LeNet::Kernels::kOfLayers);
    add("parallel_sums", LeNet::Kernels::kParallelSums);
    add("skipped_products", LeNet::Kernels::kSkippedProducts);
    add("warp_sums", LeNet::Kernels::kWarpSums);
    add("block_per_image", LeNet::Kernels::kBlockPerImage);
    add("one_launch", LeNet::Kernels::kOneLaunch);
    add("pictures", LeNet::Kernels::kOfPictures);
    return result;
}

struct PoolData {
    explicit PoolData(const day33::PoolShape& s)
        : shape(s),
          x_host(course::make_data<float>(s.inputs(), course::DataPattern::kNormal, 1)),
          x(std::span<const float>(x_host)),
          y(s.outputs()),
          place(s.outputs()),
          copy(s.inputs()) {}

    // Exactly one of the elements: the largest.
    course::VerifyResult verify(const std::vector<float>& got) const {
        std::vector<double> expected;
        expected.reserve(got.size());
        for (int plane = 0; plane < shape.planes; ++plane)
            for (int p = 0; p < shape.p(); ++p)
                for (int q = 0; q < shape.q(); ++q) {
                    float largest = -INFINITY;
                    for (int i = 0; i < shape.window * shape.window; ++i) {
                        const int row = p * shape.stride - shape.padding + i / shape.window;
                        const int col = q * shape.stride - shape.padding + i % shape.window;
                        if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
                        largest = std::max(
                            largest,
                            x_host[static_cast<std::size_t>((plane * shape.h + row) * shape.w + col)]);
                    }
                    expected.push_back(static_cast<double>(largest));
                }
        return course::verify(got, expected, {.factor = 0});
    }

    day33::PoolShape shape;
    std::vector<float> x_host;
    course::DeviceBuffer<float> x;
    course::GuardedBuffer<float> y;
    course::DeviceBuffer<std::uint8_t> place;
    course::DeviceBuffer<float> copy;
};

course::Case pool_case(const course::Dims& size) {
    if (size.size() == 1) return {};
    course::require(size.size() == 6, "size has ", size.size(),
                    " numbers; expected one, the pictures of a training step, or six, "
                    "N x C x H x W x window x stride, for example 2x3x10x12x3x2");
    course::require(std::ranges::max(size) <= 32768 && size[0] * size[1] <= std::size_t{1} << 30, "size has ",
                    std::ranges::max(size), "; expected at most 32768, and at most 2^30 planes");
    const auto at = [&](std::size_t i) { return static_cast<int>(size[i]); };
    const day33::PoolShape pool{.planes = at(0) * at(1),
                                .h = at(2),
                                .w = at(3),
                                .window = at(4),
                                .padding = (at(4) - 1) / 2,
                                .stride = at(5)};
    course::UsualCase<PoolData> usual(
        fmt::format("max_pool {}x{}x{}x{}x{}x{}", at(0), at(1), at(2), at(3), at(4), at(5)), "float",
        std::make_shared<PoolData>(pool));
    usual.output(&PoolData::y,
                 [](const PoolData& d, const std::vector<float>& got) { return d.verify(got); });
    const auto bytes = [](std::size_t elements) { return static_cast<double>(elements); };
    usual.add({.name = "max_pool",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day33::max_pool(data->shape, data->x.span(), data->y.span(), data->place.span(),
                                       stream);
                   },
               .work = {.bytes = 4 * bytes(pool.inputs()) + 5 * bytes(pool.outputs()),
                        .written = 5 * bytes(pool.outputs())}});
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    Training training;
    const course::Program program{
        .day = "day33_lenet_training",
        .title = "LeNet-5: a training step with N pictures; max-pooling of N x C x H x W x window x stride",
        .default_size = {2},
        // LeNet-5 with a small and a large batch; the pooling of ResNet-50.
        .bench_sizes = {{64}, {1024}, {64, 64, 112, 112, 3, 2}},
        .make_cases = {training_case, pool_case},
        .add_options =
            [&training](CLI::App& app, course::Program&) {
                app.add_option("--train", training.directory,
                               "train LeNet-5, write loss.csv, filters.csv and digits.csv to this directory");
                app.add_option("--steps", training.steps, "of 64 pictures each, with --train");
            },
        .finish = [&training] { train(training); }};
    return course::run_program(program, argc, argv);
}
