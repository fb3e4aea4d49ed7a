#include "lenet_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "digits.hpp"
#include "lenet.hpp"

namespace day28 {
namespace {

// `values` as lines of `columns` numbers.
void write_csv(const std::filesystem::path& file, std::span<const float> values, std::size_t columns) {
    std::ofstream out(file);
    for (std::size_t i = 0; i < values.size(); ++i)
        out << values[i] << ((i + 1) % columns == 0 ? '\n' : ',');
    course::require(static_cast<bool>(out.flush()), "--train: ", file.string(), " cannot be written");
}

}  // namespace

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

course::Case training_case(int batch) {
    course::Case result{.problem = fmt::format("lenet_step {}", batch), .dtype = "float"};
    const auto add = [&](const char* name, LeNet::Kernels kernels) {
        const auto net =
            std::make_shared<LeNet>(batch, draw_digits(static_cast<std::size_t>(4 * batch), 1), 3, kernels);
        result.contestants.push_back(
            {.name = name,
             .launch = [net](cudaStream_t stream) { net->step(stream); },
             // Right is tested elsewhere (lenet_test.cpp); here, that the training does not
             // diverge.
             .verify =
                 [net] {
                     const double loss = net->loss();
                     course::VerifyResult verified;
                     verified.compared = 1;
                     if (!(loss < 4)) {
                         verified.differing = 1;
                         verified.first.push_back({0, "a loss below 4", fmt::format("{}", loss), ""});
                     }
                     return verified;
                 }});
    };
    add("layers", LeNet::Kernels::kOfLayers);
    add("pictures", LeNet::Kernels::kOfPictures);
    return result;
}

}  // namespace day28
