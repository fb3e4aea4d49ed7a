// Day 16's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "scan.hpp"
#include "scan_peer.hpp"

namespace {

using course::DeviceBuffer;

// Whole numbers from -8 to 8: their sums stay far below 2^24, so floats hold them exactly in any
// order.
template <class T>
struct Data {
    explicit Data(std::size_t n)
        : in(n), expected(n), in_device(n), copy(n), out(n), workspace(n), on_cpu(n) {
        course::Random random(16);
        for (T& value : in)
            value = static_cast<T>(random.integer(-8, 8));
        in_device = DeviceBuffer<T>(std::span<const T>(in));
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            sum += static_cast<std::int64_t>(in[i]);
            expected[i] = static_cast<T>(sum);
        }
    }

    void scan_on_cpu() {
        T sum = 0;
        for (std::size_t i = 0; i < in.size(); ++i) {
            sum += in[i];
            on_cpu[i] = sum;
        }
    }

    std::vector<T> in;
    std::vector<T> expected;
    DeviceBuffer<T> in_device;
    DeviceBuffer<T> copy;
    course::GuardedBuffer<T> out;
    day16::Workspace workspace;
    std::vector<T> on_cpu;
};

template <class T>
course::VerifyResult same(const std::vector<T>& got, const std::vector<T>& expected) {
    if constexpr (std::is_floating_point_v<T>) {
        return course::verify(got, std::vector<double>(expected.begin(), expected.end()), {.factor = 0});
    } else {
        return course::verify_exact(got, expected);
    }
}

template <class T>
course::UsualCase<Data<T>> usual_case(const std::string& name, const std::string& dtype, std::size_t n) {
    const course::Work work = day16::variants().front().work(n);
    course::UsualCase<Data<T>> usual(name + " " + std::to_string(n), dtype, std::make_shared<Data<T>>(n));
    usual.output(&Data<T>::out,
                 [](const Data<T>& data, const auto& got) { return same(got, data.expected); });
    usual.also_spoil(
        [](Data<T>& data) { data.on_cpu.assign(data.in.size(), std::numeric_limits<T>::max()); });
    usual.cpu(
        work, [](Data<T>& data) { data.scan_on_cpu(); },
        [](const Data<T>& data) { return same(data.on_cpu, data.expected); });
    usual.add(day16::cub_scan<T>(usual.data->in_device.span(), usual.data->out.span(), work));
    usual.limit_copy(&Data<T>::in_device, &Data<T>::copy);
    return usual;
}

course::Case sum_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    auto usual = usual_case<float>("inclusive sum", "float", n);
    usual.versions(day16::variants(), n, [](const auto& version, Data<float>& data, cudaStream_t stream) {
        version.launcher(data.in_device.span(), data.out.span(), data.workspace, stream);
    });
    return usual.result;
}

// Integers: the fastest version alone.
course::Case integer_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    auto usual = usual_case<std::int32_t>("inclusive sum of integers", "int32", n);
    usual.add({.name = "inclusive_scan",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day16::inclusive_scan<std::int32_t>(data->in_device.span(), data->out.span(),
                                                           data->workspace, stream);
                   },
               .work = day16::variants().front().work(n)});
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day16_scan",
        .title = "the inclusive prefix sum of n floats, or 32-bit integers",
        .default_size = {1 << 18},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 22}, {1 << 24}, {1 << 26}, {1 << 28}},
        .make_cases = {sum_case, integer_case}};
    return course::run_program(program, argc, argv);
}
