// Day 15's program: every version verified and timed, beside CUB, a copy of as many bytes and the CPU; then the errors of float sums.
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

#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "reduction.hpp"
#include "reduction_peer.hpp"

namespace {

using course::DeviceBuffer;

// Whole numbers, small enough that floats add them without rounding in the orders used here: one element left out or taken
// twice shows, which no tolerance for rounding would see among 2^28. The last is smaller than all others, for the minimum.
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
    day15::Exact<Op> on_cpu = 0;
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
    const auto data = std::make_shared<Data<Op>>(n);
    const course::Work work = day15::variants<Op>().front().work(n);

    course::Case result{.problem = name + " " + std::to_string(n), .dtype = dtype};
    result.spoil = [data] {
        data->out.spoil();
        data->on_cpu = std::numeric_limits<day15::Exact<Op>>::lowest();
    };
    result.verify = [data] {
        using Exact = day15::Exact<Op>;
        course::VerifyResult verified = same(static_cast<Exact>(data->out.to_host()[0]), data->expected);
        verified.damage = data->out.damage();
        return verified;
    };
    result.contestants.push_back(
        {.name = "cpu_openmp",
         .role = course::Role::kPeer,
         .launch = [data](cudaStream_t) { data->on_cpu = day15::reduce_on_cpu<Op>(data->in); },
         .work = work,
         .on_host = true,
         .verify = [data] { return same(data->on_cpu, data->expected); }});
    for (const day15::Reduction<Op>& variant : day15::variants<Op>()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              variant.launcher(data->in_device.span(), data->out.span(),
                                                               data->workspace, 0, stream);
                                          },
                                      .work = work});
    }
    result.contestants.push_back(
        day15::cub_reduction<Op>(std::as_const(*data).in_device.span(), data->out.span(), work));
    // Half the elements read and written: as many bytes as the reduction reads.
    const double half_bytes = static_cast<double>(n / 2 * sizeof(typename Op::Element));
    result.contestants.push_back({.name = "cudaMemcpy of half",
                                  .role = course::Role::kLimit,
                                  .launch =
                                      [data, n](cudaStream_t stream) {
                                          CUDA_CHECK(cudaMemcpyAsync(data->copy.data(),
                                                                     data->in_device.data(),
                                                                     n / 2 * sizeof(typename Op::Element),
                                                                     cudaMemcpyDeviceToDevice, stream));
                                      },
                                  .work = {.bytes = 2 * half_bytes, .written = half_bytes}});
    return result;
}

// --- What is timed at which size --------------------------------------------------------------------------------------

constexpr std::size_t kLargestOfFloats = std::size_t{1} << 28;  // beyond it, integers

std::size_t length(const course::Dims& size) {
    if (size.size() != 1) throw std::invalid_argument("expected one number of elements, for example 1048576");
    return size[0];
}

course::Case sum_case(const course::Dims& size) {
    const std::size_t n = length(size);
    return n <= kLargestOfFloats ? make_case<day15::Sum<float>>("sum", "float", n)
                                 : make_case<day15::Sum<std::int32_t>>("sum of integers", "int32", n);
}

// That a minimum takes as long as a sum is seen at one size.
course::Case min_case(const course::Dims& size) {
    const std::size_t n = length(size);
    return n == kLargestOfFloats ? make_case<day15::Min<float>>("minimum", "float", n) : course::Case{};
}

// --- The errors of float sums -----------------------------------------------------------------------------------------

// How far `sum` is from `exact`, in units in the last place of a float that size (eps times its magnitude).
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
    for (const auto& variant : day15::variants<day15::Sum<float>>()) {
        std::set<float> sums;
        float worst = 0;
        for (int run = 0; run < kRuns; ++run) {
            variant.launcher(in_device.span(), out.span(), workspace, 0, nullptr);
            const float sum = out.to_host()[0];
            if (sums.empty() || error_in_eps(sum, exact) > error_in_eps(worst, exact)) worst = sum;
            sums.insert(sum);
        }
        print(variant.name, worst, std::to_string(sums.size()));
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
        .finish = print_errors};
    return course::run_program(program, argc, argv);
}
