// Day 16's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beyond/operator_scan.hpp"
#include "beyond/selective_scan_bench.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "scan.hpp"
#include "scan_peer.hpp"
#include "scan_plain_loop.hpp"

namespace {

using course::DeviceBuffer;

template <class T>
struct Arrays {
    // Whole numbers from -8 to 8: their sums stay far below 2^24, so floats hold them exactly in
    // any order.
    explicit Arrays(std::size_t n) : in(n), copy(n), out(n), workspace(n) {
        course::for_each_index(
            n, [&](std::size_t i) { in[i] = static_cast<T>(course::Random(16, i).integer(-8, 8)); });
        in_device = DeviceBuffer<T>(std::span<const T>(in));
    }

    std::vector<T> in;
    DeviceBuffer<T> in_device;
    DeviceBuffer<T> copy;
    course::GuardedBuffer<T> out;
    course::ExpectedOutput<T> expected;
    day16::Workspace workspace;
};

template <class T>
struct Data : Arrays<T> {
    explicit Data(std::size_t n) : Arrays<T>(n) {
        std::vector<T> sums(n);
        course::for_each_sum<std::int64_t>(
            n, [&](std::size_t i) { return static_cast<std::int64_t>(this->in[i]); },
            [&](std::size_t i, std::int64_t sum) { sums[i] = static_cast<T>(sum); });
        this->expected = course::ExpectedOutput<T>(std::move(sums));
    }
};

template <class T>
course::UsualCase<Data<T>> usual_case(const std::string& name, const std::string& dtype, std::size_t n) {
    const auto bytes = static_cast<double>(n * sizeof(T));
    const course::Work work{.bytes = 2 * bytes, .written = bytes, .flops = static_cast<double>(n)};
    course::UsualCase<Data<T>> usual(name + " " + std::to_string(n), dtype, std::make_shared<Data<T>>(n));
    course::GuardedBuffer<T> Data<T>::*const out = &Data<T>::out;  // inherited
    usual.output_in_place(out, [](Data<T>& data) { return data.expected.verify(data.out); });
    usual.add(day16::cub_scan<T>(usual.data->in_device.span(), usual.data->out.span(), work));
    DeviceBuffer<T> Data<T>::*const in = &Data<T>::in_device;
    DeviceBuffer<T> Data<T>::*const copy = &Data<T>::copy;
    usual.plain_loop(
        work, static_cast<double>(n) * 1e-9, [n] { return course::unwritten<T>(n); },
        [](const Data<T>& data, std::span<T> sums, int threads) {
            day16::scan_plainly<T>(data.in, sums, threads);
        },
        [](const Data<T>& data, const auto& sums) { return data.expected.verify(sums); });
    usual.limit_copy(in, copy);
    return usual;
}

// Four extents are those of a selective scan (beyond/selective_scan_bench.hpp).
bool is_selective(const course::Dims& size) {
    return size.size() == 4;
}

course::Case sum_case(const course::Dims& size) {
    if (is_selective(size)) return {};
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
    if (is_selective(size)) return {};
    const std::size_t n = course::only_extent(size, "elements");
    const std::string dtype = sizeof(T) == 4 ? "int32" : "int64";
    auto usual = usual_case<T>("inclusive sum of " + dtype, dtype, n);
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
struct KeyData : Arrays<float> {
    explicit KeyData(std::size_t n) : Arrays<float>(n), keys(n) {
        course::Random random(17);
        std::vector<std::size_t> begins = {0};
        while (begins.back() < n)
            begins.push_back(std::min(n, begins.back() + 1 + random.below(1000)));
        std::vector<float> sums(n);
        course::for_each_index(begins.size() - 1, [&](std::size_t run) {
            float sum = 0;
            for (std::size_t i = begins[run]; i < begins[run + 1]; ++i) {
                keys[i] = static_cast<std::int32_t>(run);
                sums[i] = sum += in[i];
            }
        });
        expected = course::ExpectedOutput<float>(std::move(sums));
        keys_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(keys));
    }
    std::vector<std::int32_t> keys;
    DeviceBuffer<std::int32_t> keys_device;
};

course::Case key_case(const course::Dims& size) {
    if (is_selective(size)) return {};
    const std::size_t n = course::only_extent(size, "elements");
    const auto bytes = static_cast<double>(n) * 4;
    const course::Work work{.bytes = 3 * bytes, .written = bytes, .flops = static_cast<double>(n)};
    course::UsualCase<KeyData> usual("sum by key " + std::to_string(n), "float",
                                     std::make_shared<KeyData>(n));
    course::GuardedBuffer<float> KeyData::*const out = &KeyData::out;  // inherited
    usual.output_in_place(out, [](KeyData& d) { return d.expected.verify(d.out); });
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

course::RandomProblem random_scan(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    const auto make =
        draw.one_of({sum_case, integer_case<std::int32_t>, integer_case<std::int64_t>, key_case});
    return {kind, size, [size = size, make] { return make(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day16_scan",
        .title = "the inclusive prefix sum of n floats or integers, sums by key, and selective scans",
        .default_size = {1 << 18},
        .bench_sizes = {{1 << 16},
                        {1 << 20},
                        {1 << 22},
                        {1 << 24},
                        {1 << 26},
                        {1 << 28},
                        {8, 1536, 2048, 16},
                        {1, 1536, 16384, 16}},
        .make_cases = {sum_case, integer_case<std::int32_t>, integer_case<std::int64_t>, key_case,
                       day16::make_selective_case},
        .distributions = {{.name = "inclusive sums",
                           .text = "n floats, 32- or 64-bit integers, or floats by key: any n, tiny, large",
                           .most = std::size_t{1} << 27,
                           .most_on_cpu = 1 << 18,
                           .ours = {"bulk_lookback", "decoupled_lookback", "inclusive_scan", "scan_by_key"},
                           .draw = random_scan}}};
    return course::run_program(program, argc, argv);
}
