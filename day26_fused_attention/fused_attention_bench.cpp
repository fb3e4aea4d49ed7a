// Day 26's program: every version of fused attention, verified and timed. A size is batch x heads x
// tokens x columns of a head. Of a result, 48 rows are compared: the first, random ones, and the
// last.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "fused_attention.hpp"

namespace {

using day26::Extents;
using day26::Precision;
using day26::ReferenceRow;
using day26::Shape;
using day26::Version;

template <class T>
constexpr const char* kTypeName = "float";
template <>
constexpr const char* kTypeName<__half> = "half";
template <>
constexpr const char* kTypeName<__nv_bfloat16> = "bfloat16";

// Of each problem. The CPU would take too long for all of them.
constexpr std::size_t kRowsToVerify = 48;
constexpr double kMostForRowPerWarp = 5e10;  // floating-point operations

template <class T>
struct Data {
    explicit Data(const Shape& given)
        : shape(given),
          q_host(course::make_data<T>(size(shape.q()), course::DataPattern::kNormal, 1)),
          k_host(course::make_data<T>(size(shape.kv()), course::DataPattern::kNormal, 2)),
          v_host(course::make_data<T>(size(shape.kv()), course::DataPattern::kNormal, 3)),
          q(std::span<const T>(q_host)),
          k(std::span<const T>(k_host)),
          v(std::span<const T>(v_host)),
          out(q_host.size()),
          scale(1 / std::sqrt(static_cast<float>(shape.dim))) {}

    static std::size_t size(const Extents& e) { return e.batch * e.heads * e.length * e.dim; }

    void launch(const Version<T>& version, cudaStream_t stream) {
        const auto& inputs = *this;
        version.launcher({{inputs.q.span(), shape.q()},
                          {inputs.k.span(), shape.kv()},
                          {inputs.v.span(), shape.kv()},
                          {out.span(), shape.q()},
                          scale,
                          shape.causal},
                         stream);
    }

    // Compares kRowsToVerify rows with the reference: the first, random ones, and the last. All
    // others must not have a NaN.
    course::VerifyResult verify(const Version<T>& version) const {
        const std::vector<T> all = out.to_host();
        const std::size_t rows = shape.batch * shape.heads * shape.length_q;
        const std::size_t checked = std::min(rows, kRowsToVerify);
        std::vector<T> got(checked * shape.dim);
        std::vector<double> expected(got.size());
        std::vector<double> magnitude(got.size());
        const auto count = static_cast<std::ptrdiff_t>(checked);
#pragma omp parallel for
        for (std::ptrdiff_t n = 0; n < count; ++n) {
            const auto number = static_cast<std::size_t>(n);
            course::Random random(7, number);
            std::size_t row = static_cast<std::size_t>(random.next() % rows);
            if (number < checked / 4) row = number;
            if (number >= checked - checked / 4) row = rows - (checked - number);
            const ReferenceRow reference = reference_of(row, day26::precision(version));
            for (std::size_t c = 0; c < shape.dim; ++c) {
                got[number * shape.dim + c] = all[row * shape.dim + c];
                expected[number * shape.dim + c] = reference.value[c];
                magnitude[number * shape.dim + c] = reference.bound[c] / course::FloatTraits<T>::kEpsilon;
            }
        }
        course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
        result.damage = out.damage();
        if (std::any_of(all.begin(), all.end(), [](T x) { return std::isnan(static_cast<float>(x)); }))
            result.damage += " there are NaN in the result";
        return result;
    }

    ReferenceRow reference_of(std::size_t row, const Precision& allowed) const {
        const std::size_t head = row / shape.length_q;
        const std::size_t head_kv =
            head / (shape.heads / shape.heads_kv);  // batches follow each other in both
        const std::size_t first = head_kv * shape.length_k * shape.dim;
        const std::size_t count = shape.length_k * shape.dim;
        return day26::reference_row<T>(
            std::span(q_host).subspan(row * shape.dim, shape.dim), std::span(k_host).subspan(first, count),
            std::span(v_host).subspan(first, count),
            day26::visible_keys(row % shape.length_q, shape.length_q, shape.length_k, shape.causal),
            static_cast<double>(scale), allowed);
    }

    Shape shape;
    std::vector<T> q_host, k_host, v_host;
    course::DeviceBuffer<T> q, k, v;
    course::GuardedBuffer<T> out;
    float scale;
};

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
             .verify = [data, &version] { return data->verify(version); }});
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
        const course::VerifyResult result = data.verify(version);
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
