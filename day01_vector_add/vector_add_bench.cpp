// Day 1's program: every version verified and timed, beside a copy (the machine's limit) and the CPU.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "common/bench/program.hpp"
#include "common/check/check.hpp"
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

    std::vector<float> a, b, c;
    std::vector<double> expected;  // independent of add_on_cpu, which is a contestant too
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

course::Case make_case(const course::Dims& size) {
    if (size.size() != 1) throw std::invalid_argument("expected one number of elements, for example 1048576");
    const std::size_t n = size[0];
    const auto data = std::make_shared<Data>(n);
    const auto exact = [data](const std::vector<float>& got) {
        return course::verify(got, data->expected, {.factor = 0});
    };

    course::Case result{.problem = "vector_add " + std::to_string(n), .dtype = "float"};
    result.spoil = [data] {
        data->c_device.spoil();
        std::fill(data->c.begin(), data->c.end(), std::numeric_limits<float>::quiet_NaN());
    };
    result.verify = [data, exact] {
        course::VerifyResult verified = exact(data->c_device.to_host());
        verified.damage = data->c_device.damage();
        return verified;
    };
    const course::Work work = day01::variants().front().work(n);
    result.contestants.push_back(
        {.name = "cpu_openmp",
         .role = course::Role::kPeer,
         .launch = [data](cudaStream_t) { day01::add_on_cpu(data->a, data->b, data->c); },
         .work = work,
         .on_host = true,
         .verify = [data, exact] { return exact(data->c); }});
    for (const day01::VectorAdd& variant : day01::variants()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              variant.launcher(data->a_device.span(), data->b_device.span(),
                                                               data->c_device.span(), stream);
                                          },
                                      .work = variant.work(n),
                                      .cannot_run = variant.cannot_run(n)});
    }
    // What the addition costs when its data must cross the bus first, and the result must come back.
    result.contestants.push_back(
        {.name = "float4_with_copies",
         .launch =
             [data](cudaStream_t) {
                 data->a_device.copy_from(data->a);
                 data->b_device.copy_from(data->b);
                 day01::variants().back().launcher(data->a_device.span(), data->b_device.span(),
                                                   data->c_device.span(), nullptr);
                 course::copy_device_to_host(data->c.data(), data->c.size(), data->c_device.data(),
                                             data->c.size(), sizeof(float), nullptr);
             },
         .work = work,
         .on_host = true,
         .verify = [data, exact] { return exact(data->c); }});
    result.contestants.push_back(
        {.name = "cudaMemcpy",
         .role = course::Role::kLimit,
         .launch =
             [data](cudaStream_t stream) {
                 CUDA_CHECK(cudaMemcpyAsync(data->c_device.data(), data->a_device.data(),
                                            data->a_device.bytes(), cudaMemcpyDeviceToDevice, stream));
             },
         .work = {.bytes = 2.0 * sizeof(float) * static_cast<double>(n),
                  .written = sizeof(float) * static_cast<double>(n)}});
    return result;
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
