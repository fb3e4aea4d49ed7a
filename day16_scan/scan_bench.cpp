// Day 16's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "operator_scan.hpp"
#include "scan.hpp"
#include "scan_peer.hpp"

namespace {

constexpr std::size_t kMostOnCpu = std::size_t{1} << 23;  // elements; more would take long to repeat

using course::DeviceBuffer;

// Whole numbers from -8 to 8: their sums stay far below 2^24, so floats hold them exactly in any
// order.
template <class T>
struct Data {
    using Expected = std::conditional_t<std::is_floating_point_v<T>, double, T>;

    explicit Data(std::size_t n)
        : in(n), expected(n), in_device(n), copy(n), out(n), workspace(n), on_cpu(n) {
        course::Random random(16);
        for (T& value : in)
            value = static_cast<T>(random.integer(-8, 8));
        in_device = DeviceBuffer<T>(std::span<const T>(in));
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            sum += static_cast<std::int64_t>(in[i]);
            expected[i] = static_cast<Expected>(sum);
        }
    }

    course::VerifyResult verify(const std::vector<T>& got) const {
        if constexpr (std::is_floating_point_v<T>) {
            return course::verify(got, expected, {.factor = 0});
        } else {
            return course::verify_exact(got, expected);
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
    std::vector<Expected> expected;
    DeviceBuffer<T> in_device;
    DeviceBuffer<T> copy;
    course::GuardedBuffer<T> out;
    day16::Workspace workspace;
    std::vector<T> on_cpu;
};

template <class T>
course::UsualCase<Data<T>> usual_case(const std::string& name, const std::string& dtype, std::size_t n) {
    const auto bytes = static_cast<double>(n * sizeof(T));
    const course::Work work{.bytes = 2 * bytes, .written = bytes, .flops = static_cast<double>(n)};
    course::UsualCase<Data<T>> usual(name + " " + std::to_string(n), dtype, std::make_shared<Data<T>>(n));
    usual.output(&Data<T>::out, [](const Data<T>& data, const auto& got) { return data.verify(got); });
    usual.also_spoil(
        [](Data<T>& data) { data.on_cpu.assign(data.in.size(), std::numeric_limits<T>::max()); });
    if (n <= kMostOnCpu)
        usual.cpu(
            work, [](Data<T>& data) { data.scan_on_cpu(); },
            [](const Data<T>& data) { return data.verify(data.on_cpu); });
    usual.add(day16::cub_scan<T>(usual.data->in_device.span(), usual.data->out.span(), work));
    usual.limit_copy(&Data<T>::in_device, &Data<T>::copy);
    return usual;
}

course::Case sum_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    auto usual = usual_case<float>("inclusive sum", "float", n);
    usual.versions(day16::versions(), n, [](const auto& version, Data<float>& data, cudaStream_t stream) {
        version.launcher(data.in_device.span(), data.out.span(), data.workspace, stream);
    });
    return usual.result;
}

// Other elements: the fastest version alone.
template <class T>
course::Case integer_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    auto usual = usual_case<T>("inclusive sum of integers", sizeof(T) == 4 ? "int32" : "int64", n);
    usual.add({.name = "inclusive_scan",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       const course::DeviceSpan<const T> in = data->in_device.span();
                       day16::inclusive_scan(in, data->out.span(), data->workspace, stream);
                   },
               .work = usual.result.contestants.front().work});
    return usual.result;
}

// Sums by key: runs of 1 to 1,000 equal keys.
struct KeyData : Data<float> {
    explicit KeyData(std::size_t n) : Data<float>(n), keys(n) {
        course::Random random(17);
        std::size_t begin = 0;
        for (std::int32_t key = 0; begin < n; ++key) {
            const std::size_t end = std::min(n, begin + 1 + random.below(1000));
            double sum = 0;
            for (; begin < end; ++begin) {
                keys[begin] = key;
                expected[begin] = sum += in[begin];
            }
        }
        keys_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(keys));
    }
    std::vector<std::int32_t> keys;
    DeviceBuffer<std::int32_t> keys_device;
};

course::Case key_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    const auto bytes = static_cast<double>(n) * 4;
    const course::Work work{.bytes = 3 * bytes, .written = bytes, .flops = static_cast<double>(n)};
    course::UsualCase<KeyData> usual("sum by key " + std::to_string(n), "float",
                                     std::make_shared<KeyData>(n));
    course::GuardedBuffer<float> KeyData::*const out = &KeyData::out;  // inherited
    usual.output(out, [](const KeyData& data, const auto& got) { return data.verify(got); });
    KeyData& data = *usual.data;
    usual.add(day16::cub_scan_by_key(data.keys_device.span(), data.in_device.span(), data.out.span(), work));
    usual.add({.name = "scan_by_key",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day16::scan_by_key(data->keys_device.span(), data->in_device.span(), data->out.span(),
                                          data->workspace, stream);
                   },
               .work = work});
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day16_scan",
        .title = "the inclusive prefix sum of n floats or integers, and sums by key",
        .default_size = {1 << 18},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 22}, {1 << 24}, {1 << 26}, {1 << 28}},
        .make_cases = {sum_case, integer_case<std::int32_t>, integer_case<std::int64_t>, key_case}};
    return course::run_program(program, argc, argv);
}
