// Day 21's program: every version of softmax verified and timed, beside a copy of the same bytes
// (the machine's limit) and the CPU.
//
//     day21_softmax_rows --sweep       200 random shapes of 64 to 128 MB, for `auto` and the copy
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "softmax_rows.hpp"
#include "softmax_rows_plain_loop.hpp"

namespace {

struct Data {
    explicit Data(const day21::Problem& p)
        : problem(p),
          in(course::make_data<float>(p.rows * p.cols, course::DataPattern::kNormal, 1)),
          expected(in.size()),
          magnitude(in.size()),
          in_device(std::span<const float>(in)),
          out_device(in.size()),
          workspace(day21::workspace_size(p.rows, p.cols)) {
        day21::softmax_on_cpu(p, in, expected);
        day21::error_magnitudes(p, in, expected, magnitude);
    }

    day21::Problem problem;
    std::vector<float> in;
    std::vector<double> expected, magnitude;
    course::DeviceBuffer<float> in_device;
    course::GuardedBuffer<float> out_device;
    course::DeviceBuffer<day21::MaxSum> workspace;
};

course::Case make_case(const course::Dims& size) {
    course::require(size.size() == 2, "size has ", size.size(),
                    " numbers; expected rows x columns, for example 4096x1024");
    const day21::Problem problem{size[0], size[1], day21::Output::kSoftmax};
    const std::size_t elements = problem.rows * problem.cols;

    course::UsualCase<Data> usual(
        "softmax " + std::to_string(problem.rows) + "x" + std::to_string(problem.cols), "float",
        std::make_shared<Data>(problem));
    const auto verify = [](const Data& data, const auto& got) {
        return course::verify(got, data.expected, {}, data.magnitude, data.problem.cols);
    };
    usual.output(&Data::out_device, verify);
    usual.versions(day21::versions(), problem, [](const auto& version, Data& data, cudaStream_t stream) {
        const auto [rows, cols, output] = data.problem;
        version.launcher(output, data.in_device.matrix(rows, cols), data.out_device.matrix(rows, cols),
                         data.workspace.span(), stream);
    });
    usual.plain_loop(
        day21::versions().front().work(problem), static_cast<double>(elements) * 8e-9,
        [elements] { return course::unwritten<float>(elements); },
        [](const Data& data, std::span<float> out, int threads) {
            day21::softmax_plainly(data.problem, data.in, out, threads);
        },
        verify);
    usual.limit_copy(&Data::in_device, &Data::out_device);
    return usual.result;
}

// Rows of 1 to 100,000 columns, drawn at random, as many as 64 to 128 MB take. Every second shape
// has a multiple of 4 columns.
std::vector<course::Dims> sweep_of_rows() {
    constexpr int kCount = 200;
    course::Random random(21);
    std::vector<course::Dims> sizes;
    for (int i = 0; i < kCount; ++i) {
        auto cols = static_cast<std::size_t>(std::exp(random.uniform(0, std::log(100000.0f))));
        if (i % 2 == 1) cols = (cols + 3) / 4 * 4;
        const auto elements = static_cast<std::size_t>(std::exp2(random.uniform(24, 25)));
        sizes.push_back({course::ceil_div(elements, cols), cols});
    }
    return sizes;
}

course::Case make_sweep_case(const course::Dims& size) {
    course::Case result = make_case(size);
    std::erase_if(result.contestants, [](const course::Contestant& one) {
        return one.role == course::Role::kOurs ? one.name != "auto" : one.role == course::Role::kPeer;
    });
    return result;
}

course::RandomProblem random_rows(course::Draw& draw) {
    const auto [kind, size] = course::draw_matrix(draw);
    return {kind, size, [size = size] { return make_sweep_case(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day21_softmax_rows",
        .title = "softmax of each row of a matrix",
        .default_size = {256, 1024},
        .bench_sizes = {{4096, 1024},
                        {8192, 8192},
                        {1024, 32768},
                        {65536, 128},
                        {512, 131072},
                        {16, 1 << 20},
                        {1, 1 << 22}},
        .sweep_sizes = sweep_of_rows(),
        .make_cases = {make_case},
        .sweep_cases = {make_sweep_case},
        .sweep_repeats = course::kSweepRepeats,
        .distributions = {{.name = "softmax",
                           .text = "rows x columns: any, square, few long rows, many short rows, odd",
                           .most = std::size_t{1} << 26,
                           .most_on_cpu = 1 << 17,
                           .ours = {"auto"},
                           .draw = random_rows,
                           .beside = course::Role::kLimit}}};
    return course::run_program(program, argc, argv);
}
