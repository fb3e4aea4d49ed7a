// Day 20's program: every version of softmax verified and timed, beside a copy of the same bytes
// (the machine's limit) and the CPU; then the element-wise functions on as many elements.
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "elementwise.hpp"
#include "softmax.hpp"
#include "softmax_plain_loop.hpp"

namespace {

struct Row {
    explicit Row(const day20::Problem& p)
        : problem(p),
          in(course::make_data<float>(p.n, course::DataPattern::kNormal, 1)),
          expected(p.n),
          magnitude(p.n),
          in_device(std::span<const float>(in)),
          out_device(p.n),
          workspace(day20::workspace_size(p.n)) {
        day20::softmax_on_cpu(p.output, in, expected);
        day20::error_magnitudes(p.output, in, expected, magnitude);
    }

    day20::Problem problem;
    std::vector<float> in;
    std::vector<double> expected, magnitude;
    course::DeviceBuffer<float> in_device;
    course::GuardedBuffer<float> out_device;
    course::DeviceBuffer<day20::MaxSum> workspace;
};

course::Case make_softmax(const course::Dims& size) {
    const day20::Problem problem{course::only_extent(size, "elements"), day20::Output::kSoftmax};
    course::UsualCase<Row> usual("softmax 1x" + std::to_string(problem.n), "float",
                                 std::make_shared<Row>(problem));
    const auto verify = [](const Row& row, const auto& got) {
        return course::verify(got, row.expected, {}, row.magnitude);
    };
    usual.output(&Row::out_device, verify);
    usual.versions(day20::versions(), problem, [](const auto& version, Row& row, cudaStream_t stream) {
        version.launcher(row.problem.output, row.in_device.span(), row.out_device.span(),
                         row.workspace.span(), stream);
    });
    usual.plain_loop(
        day20::versions().front().work(problem), static_cast<double>(problem.n) * 8e-9,
        [n = problem.n] { return course::unwritten<float>(n); },
        [](const Row& row, std::span<float> out, int threads) {
            day20::softmax_plainly(row.in, out, threads);
        },
        verify);
    usual.limit_copy(&Row::in_device, &Row::out_device);
    return usual.result;
}

struct Elements {
    explicit Elements(std::size_t n)
        : in(course::make_data<float>(n, course::DataPattern::kNormal, 1)),
          in_device(std::span<const float>(in)),
          out_device(n) {}

    std::vector<float> in;
    course::DeviceBuffer<float> in_device;
    course::GuardedBuffer<float> out_device;
};

course::VerifyResult verify_elements(const day20::Elementwise& function, const Elements& data) {
    std::vector<double> expected(data.in.size());
    std::vector<double> magnitude(data.in.size());
    const auto count = static_cast<std::ptrdiff_t>(data.in.size());
#pragma omp parallel for
    for (std::ptrdiff_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const auto x = static_cast<double>(data.in[i]);
        expected[i] = function.exact(x);
        magnitude[i] = day20::error_magnitude(function, x);
    }
    course::VerifyResult verified =
        course::verify(data.out_device.to_host(), expected, {.factor = 1}, magnitude);
    verified.damage = data.out_device.damage();
    return verified;
}

// Here the contestants differ in what they compute, so each has its own expected values.
course::Case make_elementwise(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    const auto data = std::make_shared<Elements>(n);
    course::UsualCase<Elements> usual("elementwise " + std::to_string(n), "float", data);
    usual.also_spoil([](Elements& d) { d.out_device.spoil(); });
    for (const day20::Elementwise& function : day20::elementwise_functions()) {
        usual.add({.name = function.name,
                   .launch =
                       [data, &function](cudaStream_t stream) {
                           function.launcher(data->in_device.span(), data->out_device.span(), stream);
                       },
                   .work = day20::elementwise_work(n),
                   .verify = [data, &function] { return verify_elements(function, *data); }});
    }
    usual.limit_copy(&Elements::in_device, &Elements::out_device);
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day20_softmax",
                                  .title = "softmax of one row, and functions of one element",
                                  .default_size = {1 << 18},
                                  .bench_sizes = {{1 << 22}, {1 << 24}},
                                  .make_cases = {make_softmax, make_elementwise}};
    return course::run_program(program, argc, argv);
}
