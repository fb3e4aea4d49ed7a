// Day 26's program: every version of fused attention, verified and timed. A size is batch x heads x
// tokens x head dimension.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "common/bench/attention_case.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "fused_attention.hpp"

namespace {

using course::attention::Data;
using course::attention::kTypeName;
using day26::Shape;
using day26::Version;

constexpr double kMostForRowPerWarp = 5e10;  // floating-point operations

template <class T, bool kCausal>
course::Case make_case(const course::Dims& size) {
    course::require(
        size.size() == 4, "--size has ", size.size(),
        " extents; expected 4: batch x heads x tokens x columns of a head, for example 4x8x2048x64");
    course::require(size[3] <= day26::kMaxDim, "--size has heads of ", size[3], " columns; expected at most ",
                    day26::kMaxDim);
    const Shape shape{size[0], size[1], size[1], size[2], size[2], size[3], kCausal};
    const auto data = std::make_shared<Data<T>>(shape);
    course::Case result{.problem = fmt::format("fused_attention {} {}", kTypeName<T>, day26::name(shape)),
                        .dtype = kTypeName<T>};
    result.spoil = [data] { data->out.spoil(); };
    for (const Version<T>& version : day26::versions<T>()) {
        const course::Work work = version.work(shape);
        std::string reason = version.cannot_run(shape);
        if (version.name == "row_per_warp" && work.flops > kMostForRowPerWarp) reason = "would take long";
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { data->launch(version, stream); },
             .work = work,
             .cannot_run = reason,
             .verify = [data, &version] { return data->verify(day26::precision(version)); }});
    }
    return result;
}

// A table: what fused attention takes of the device's memory for 1 x 8 heads of 64 columns in BF16,
// from 1 k tokens to `longest`, and what the matrix of scores would take. Each length is run and
// its last row verified. Throws std::runtime_error when it is wrong.
std::string memory_table(std::size_t longest) {
    std::string table =
        fmt::format("{:>10} {:>22} {:>22}\n", "tokens", "Q, K, V, result: MiB", "scores would be: MiB");
    const auto free_memory = [] {
        std::size_t free_bytes = 0;
        std::size_t total_bytes = 0;
        CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
        return static_cast<double>(free_bytes);
    };
    const Version<__nv_bfloat16>& version = day26::versions<__nv_bfloat16>().front();
    if (const std::string reason = version.cannot_run({}); !reason.empty()) return reason + "\n";
    Data<__nv_bfloat16>({1, 1, 1, 1, 1, 64, false}).launch(version, nullptr);  // what the kernel itself takes
    CUDA_CHECK(cudaDeviceSynchronize());
    for (std::size_t length = std::min<std::size_t>(longest, 1024); length <= longest; length *= 2) {
        const double before = free_memory();
        Data<__nv_bfloat16> data({1, 8, 8, length, length, 64, false});
        data.launch(version, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        const double taken = before - free_memory();
        const course::VerifyResult result = data.verify(day26::precision(version));
        if (!result.ok()) throw std::runtime_error(fmt::format("{} tokens: {}", length, result.message()));
        table += fmt::format("{:>10} {:>22.0f} {:>22.0f}\n", length, taken / (1 << 20),
                             8.0 * 2 * static_cast<double>(length) * static_cast<double>(length) / (1 << 20));
    }
    return table;
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{
        .day = "day26_fused_attention",
        .title = "fused attention: softmax(scale Q K^T) V without storing the scores",
        .default_size = {1, 2, 64, 16},
        .bench_sizes = {{4, 8, 2048, 64},
                        {4, 16, 4096, 128},
                        {2, 16, 8192, 128},
                        {1, 16, 16384, 128},
                        {1, 8, 65536, 64}},
        .make_cases = {make_case<float, false>, make_case<__nv_bfloat16, false>, make_case<float, true>,
                       make_case<__nv_bfloat16, true>, make_case<__half, false>},
        .stand_in_limit = 1 << 15};
    bool memory = false;
    program.add_options = [&memory](CLI::App& app, course::Program&) {
        app.add_flag("--memory", memory, "show what memory fused attention takes, up to 64 k tokens");
    };
    program.finish = [&memory] {
        if (memory) std::cout << memory_table(course::is_cpu_stand_in() ? 512 : 65536);
    };
    return course::run_program(program, argc, argv);
}
