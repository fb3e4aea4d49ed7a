// Day 20's program: every version of softmax verified and timed, beside a copy of the same bytes (the machine's limit) and the
// CPU; then the element-wise functions on as many elements.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "elementwise.hpp"
#include "softmax.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kMostOnCpu = std::size_t{1} << 23;  // elements; more would take long to repeat

// Element-wise functions do not care for the shape. Matrices with longer rows are there for softmax.
constexpr std::size_t kMostColsElementwise = 8192;

struct Rows {
    std::size_t rows, cols;
};

Rows parse(const course::Dims& size) {
    if (size.size() != 2) throw std::invalid_argument("expected rows x columns, for example 4096x1024");
    return {size[0], size[1]};
}

course::Contestant copy(const DeviceBuffer<float>& from, course::GuardedBuffer<float>& to, course::Work work,
                        std::shared_ptr<const void> owner) {
    work.flops = 0;
    return {.name = "cudaMemcpy",
            .role = course::Role::kLimit,
            .launch =
                [&from, &to, owner](cudaStream_t stream) {
                    CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                                               stream));
                },
            .work = work};
}

struct Data {
    explicit Data(const day20::Problem& p)
        : problem(p),
          in(course::make_data<float>(p.rows * p.cols, course::DataPattern::kNormal, 1)),
          expected(in.size()),
          magnitude(in.size()),
          on_cpu(in.size()),
          in_device(std::span<const float>(in)),
          out_device(in.size()),
          workspace(day20::workspace_size(p.rows, p.cols)) {
        day20::softmax_on_cpu(p, in, expected);
        day20::error_magnitudes(p, in, expected, magnitude);
    }

    day20::Problem problem;
    std::vector<float> in;
    std::vector<double> expected, magnitude, on_cpu;
    DeviceBuffer<float> in_device;
    course::GuardedBuffer<float> out_device;
    DeviceBuffer<day20::MaxSum> workspace;
};

course::Case make_softmax(const course::Dims& size, day20::Output output) {
    const auto [rows, cols] = parse(size);
    const day20::Problem problem{rows, cols, output};
    const auto data = std::make_shared<Data>(problem);

    course::Case result{
        .problem = day20::name(output) + " " + std::to_string(rows) + "x" + std::to_string(cols),
        .dtype = "float"};
    result.spoil = [data] {
        data->out_device.spoil();
        std::fill(data->on_cpu.begin(), data->on_cpu.end(), std::numeric_limits<double>::quiet_NaN());
    };
    result.verify = [data, cols] {
        course::VerifyResult verified =
            course::verify(data->out_device.to_host(), data->expected, {}, data->magnitude, cols);
        verified.damage = data->out_device.damage();
        return verified;
    };
    const course::Work work = day20::variants().front().work(problem);
    result.contestants.push_back(
        {.name = "cpu_openmp",
         .role = course::Role::kPeer,
         .launch = [data](cudaStream_t) { day20::softmax_on_cpu(data->problem, data->in, data->on_cpu); },
         .work = work,
         .cannot_run = rows * cols <= kMostOnCpu ? "" : "it would take long",
         .on_host = true,
         .verify = [data] { return course::verify(data->on_cpu, data->expected, {.factor = 0}); }});
    for (const day20::Softmax& variant : day20::variants()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              const auto [rows_, cols_, output_] = data->problem;
                                              variant.launcher(output_, data->in_device.matrix(rows_, cols_),
                                                               data->out_device.matrix(rows_, cols_),
                                                               data->workspace.span(), stream);
                                          },
                                      .work = variant.work(problem),
                                      .cannot_run = variant.cannot_run(problem)});
    }
    result.contestants.push_back(copy(data->in_device, data->out_device, work, data));
    return result;
}

course::Case make_elementwise(const course::Dims& size) {
    const auto [rows, cols] = parse(size);
    if (cols > kMostColsElementwise) return {};
    const std::size_t n = rows * cols;
    struct Elements {
        explicit Elements(std::size_t count)
            : in(course::make_data<float>(count, course::DataPattern::kNormal, 1)),
              in_device(std::span<const float>(in)),
              out_device(count) {}
        std::vector<float> in;
        DeviceBuffer<float> in_device;
        course::GuardedBuffer<float> out_device;
    };
    const auto data = std::make_shared<Elements>(n);

    course::Case result{.problem = "elementwise " + std::to_string(n), .dtype = "float"};
    result.spoil = [data] { data->out_device.spoil(); };
    for (const day20::Elementwise& function : day20::elementwise_functions()) {
        const auto verify = [data, &function, n] {
            std::vector<double> expected(n);
            std::vector<double> magnitude(n);
            const auto count = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for
            for (std::ptrdiff_t k = 0; k < count; ++k) {
                const auto i = static_cast<std::size_t>(k);
                const auto x = static_cast<double>(data->in[i]);
                expected[i] = function.exact(x);
                magnitude[i] = day20::error_magnitude(function, x);
            }
            course::VerifyResult verified =
                course::verify(data->out_device.to_host(), expected, {.factor = 1}, magnitude);
            verified.damage = data->out_device.damage();
            return verified;
        };
        result.contestants.push_back({.name = function.name,
                                      .launch =
                                          [data, &function](cudaStream_t stream) {
                                              function.launcher(data->in_device.span(),
                                                                data->out_device.span(), stream);
                                          },
                                      .work = day20::elementwise_work(n),
                                      .verify = verify});
    }
    result.contestants.push_back(copy(data->in_device, data->out_device, day20::elementwise_work(n), data));
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day20_softmax",
        .title = "softmax of each row of a matrix",
        .default_size = {256, 1024},
        .bench_sizes = {{4096, 1024}, {8192, 8192}, {1024, 32768}, {65536, 128}, {16, 1 << 20}, {1, 1 << 22}},
        .make_cases = {[](const course::Dims& size) { return make_softmax(size, day20::Output::kSoftmax); },
                       make_elementwise}};
    return course::run_program(program, argc, argv);
}
