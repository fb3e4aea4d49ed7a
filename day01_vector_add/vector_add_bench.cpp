// Day 1's program: every version verified and timed, beside a copy (the bandwidth limit) and the
// CPU.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "vector_add.hpp"

namespace {

using course::DeviceBuffer;

struct Data {
    explicit Data(std::size_t n)
        : a(course::make_data<float>(n, course::DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(n, course::DataPattern::kSignedUniform, 2)),
          c(n),
          expected(n),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          c_device(n) {
        for (std::size_t i = 0; i < n; ++i)
            expected[i] = static_cast<float>(static_cast<double>(a[i]) + static_cast<double>(b[i]));
    }

    // Equal bits are expected: one addition has one correctly rounded result.
    course::VerifyResult compare(const std::vector<float>& got) const {
        return course::verify(got, expected, {.factor = 0});
    }

    std::vector<float> a, b;
    std::vector<float> c;          // the result on the host
    std::vector<double> expected;  // independent of add_on_cpu, which is measured, too
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

course::Case make_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    const course::Work work = day01::versions().front().work(n);

    course::UsualCase<Data> usual("vector_add " + std::to_string(n), "float", std::make_shared<Data>(n));
    usual.output(&Data::c_device, [](const Data& data, const auto& got) { return data.compare(got); });
    usual.also_spoil([](Data& data) { std::ranges::fill(data.c, std::numeric_limits<float>::quiet_NaN()); });
    usual.cpu(
        work, [](Data& data) { day01::add_on_cpu(data.a, data.b, data.c); },
        [](const Data& data) { return data.compare(data.c); });
    usual.versions(day01::versions(), n, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.a_device.span(), data.b_device.span(), data.c_device.span(), stream);
    });
    // What the addition costs when the inputs are copied to the GPU first, and the result back.
    usual.add({.name = "float4_with_copies",
               .launch =
                   [data = usual.data](cudaStream_t) {
                       data->a_device.copy_from(data->a);
                       data->b_device.copy_from(data->b);
                       day01::versions().back().launcher(data->a_device.span(), data->b_device.span(),
                                                         data->c_device.span(), nullptr);
                       course::copy_device_to_host(data->c.data(), data->c.size(), data->c_device.data(),
                                                   data->c.size(), sizeof(float), nullptr);
                   },
               .work = work,
               .on_host = true,
               .verify = [data = usual.data] { return data->compare(data->c); }});
    usual.limit_copy(&Data::a_device, &Data::c_device);
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day01_vector_add",
                                  .title = "c = a + b for n floats",
                                  .default_size = {1 << 20},
                                  .bench_sizes = {{1 << 20}, {1 << 24}, {1 << 28}},
                                  .make_cases = {make_case}};
    return course::run_program(program, argc, argv);
}
