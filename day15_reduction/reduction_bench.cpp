// Day 15's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU. Then the errors of float sums.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "reduction.hpp"
#include "reduction_peer.hpp"
#include "reduction_plain_loop.hpp"

namespace {

using course::DeviceBuffer;

// Small whole numbers: floats add them without rounding in all orders used here, so the comparison
// is exact. A tolerance would not notice one element of 2^28 missing. The last one is the minimum.
template <class T>
std::vector<T> whole_numbers(std::size_t n) {
    course::Random random(15);
    std::vector<T> values(n);
    for (T& value : values)
        value = static_cast<T>(random.integer(-8, 8));
    if (n > 0) values.back() = static_cast<T>(-9);
    return values;
}

template <class Op>
struct Data {
    using Element = typename Op::Element;
    using Result = typename Op::Result;

    explicit Data(std::size_t n)
        : in(whole_numbers<Element>(n)),
          in_device(std::span<const Element>(in)),
          copy(n / 2 + 1),
          out(1),
          expected(day15::reduce_on_cpu<Op>(in)) {}

    std::vector<Element> in;
    DeviceBuffer<Element> in_device;
    DeviceBuffer<Element> copy;
    course::GuardedBuffer<Result> out;
    day15::Workspace workspace;
    day15::Exact<Op> expected;
};

template <class T>
course::VerifyResult same(T got, T expected) {
    if constexpr (std::is_floating_point_v<T>) {
        return course::verify(std::vector{got}, std::vector{static_cast<double>(expected)}, {.factor = 0});
    } else {
        return course::verify_exact(std::vector{got}, std::vector{expected});
    }
}

template <class Op>
course::Case make_case(const std::string& name, const std::string& dtype, std::size_t n) {
    using Element = typename Op::Element;
    using Exact = day15::Exact<Op>;
    using Inputs = Data<Op>;
    const course::Work work = day15::versions<Op>().front().work(n);

    course::UsualCase<Inputs> usual(name + " " + std::to_string(n), dtype, std::make_shared<Inputs>(n));
    const auto verify = [](const Inputs& data, const auto& got) {
        return same(static_cast<Exact>(got[0]), data.expected);
    };
    usual.output(&Inputs::out, verify);
    usual.versions(day15::versions<Op>(), n, [](const auto& version, Inputs& data, cudaStream_t stream) {
        version.launcher(data.in_device.span(), data.out.span(), data.workspace, 0, stream);
    });
    usual.add(
        day15::cub_reduction<Op>(std::as_const(*usual.data).in_device.span(), usual.data->out.span(), work));
    usual.plain_loop(
        work, static_cast<double>(n) * 1e-9, [] { return course::unwritten<typename Op::Result>(1); },
        [](const Inputs& data, auto& out, int threads) {
            out[0] = day15::reduce_plainly<Op>(data.in, threads);
        },
        verify);
    // Half the elements, read and written: as many bytes as the reduction reads.
    usual.limit_copy(&Inputs::in_device, &Inputs::copy, n / 2 * sizeof(Element), "cudaMemcpy of half");
    return usual.result;
}

// --- What is timed at which size -----------------------------------------------------------------

// Larger inputs are integers: floats would round.
constexpr std::size_t kLargestOfFloats = std::size_t{1} << 28;

course::Case sum_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    return n <= kLargestOfFloats ? make_case<day15::Sum<float>>("sum", "float", n)
                                 : make_case<day15::Sum<std::int32_t>>("sum of integers", "int32", n);
}

// A minimum takes as long as a sum: one size shows it.
course::Case min_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    return n == kLargestOfFloats ? make_case<day15::Min<float>>("minimum", "float", n) : course::Case{};
}

course::RandomProblem random_sum(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    if (draw.one_of({true, false}))
        return {kind, size, [n = size[0]] { return make_case<day15::Sum<float>>("sum", "float", n); }};
    return {kind, size,
            [n = size[0]] { return make_case<day15::Sum<std::int32_t>>("sum of integers", "int32", n); }};
}

// --- The errors of float sums --------------------------------------------------------------------

// How far `sum` is from `exact`, in units in the last place of a float that size (eps times its
// magnitude).
double error_in_eps(float sum, double exact) {
    return std::abs(static_cast<double>(sum) - exact) /
           (static_cast<double>(std::numeric_limits<float>::epsilon()) * std::abs(exact));
}

void print_errors() {
    constexpr std::size_t kElements = std::size_t{1} << 20;
    constexpr int kRuns = 5;
    course::Random random(15);
    std::vector<float> in(kElements);
    for (float& x : in)
        x = random.uniform(0, 1);
    const double exact = day15::reduce_on_cpu<day15::Sum<float>>(in);

    fmt::print("\nThe sum of {} floats in [0, 1), against a sum in double: {:.4f}\n", kElements, exact);
    fmt::print("  {:<22}  {:>12}  {:>14}  {}\n", "order", "sum", "error in eps",
               fmt::format("different results in {} runs", kRuns));
    const auto print = [exact](std::string_view order, float sum, std::string_view different) {
        fmt::print("  {:<22}  {:>12.4f}  {:>14.2f}  {}\n", order, sum, error_in_eps(sum, exact), different);
    };
    print("CPU, one after another", day15::sum_in_order(in), "-");
    print("CPU, Kahan", day15::sum_kahan(in), "-");

    const DeviceBuffer<float> in_device{std::span<const float>(in)};
    DeviceBuffer<float> out(1);
    day15::Workspace workspace;
    for (const auto& version : day15::versions<day15::Sum<float>>()) {
        std::set<float> sums;
        float worst = 0;
        for (int run = 0; run < kRuns; ++run) {
            version.launcher(in_device.span(), out.span(), workspace, 0, nullptr);
            const float sum = out.to_host()[0];
            if (sums.empty() || error_in_eps(sum, exact) > error_in_eps(worst, exact)) worst = sum;
            sums.insert(sum);
        }
        print(version.name, worst, std::to_string(sums.size()));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day15_reduction",
        .title = "the sum of n floats (of 32-bit integers, beyond 2^28)",
        .default_size = {1 << 18},
        .bench_sizes = {{1 << 20}, {1 << 22}, {1 << 24}, {1 << 26}, {1 << 28}, {1 << 30}},
        .make_cases = {sum_case, min_case},
        .distributions = {{.name = "sums",
                           .text = "n floats or 32-bit integers: any n, tiny, large",
                           .most = kLargestOfFloats,
                           .most_on_cpu = 1 << 18,
                           .ours = {"single_pass", "deterministic"},
                           .draw = random_sum}},
        .finish = print_errors};
    return course::run_program(program, argc, argv);
}
