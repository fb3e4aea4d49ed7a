// Day 31's program. A size is M x N x K: the int8 product by every version and by cuBLAS, on random
// bytes.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/program.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/sampled_rows.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "int8_matmul.hpp"
#include "int8_matmul_peer.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;

constexpr std::size_t kSample = 64;                           // rows of the product that are verified
constexpr std::size_t kMostForScalar = std::size_t{1} << 36;  // multiply-adds

struct Data {
    Data(std::size_t m, std::size_t n, std::size_t k) : a(m * k), w(n * k), c(m * n) {}
    DeviceBuffer<std::int8_t> a, w;
    GuardedBuffer<std::int32_t> c;
    std::vector<std::int32_t> expected;  // of the sampled rows
};

std::vector<std::int8_t> random_bytes(std::size_t count, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<std::int8_t> values(count);
    for (std::int8_t& value : values)
        value = static_cast<std::int8_t>(random.next());
    return values;
}

std::string cannot_run(const day31::Version& version, const day31::MatmulShape& shape) {
    if (version.launcher.needs_aligned_rows && shape.k % 16 != 0)
        return "needs rows of a multiple of 16 bytes";
    if (version.name == "scalar" && shape.m * shape.n * shape.k > kMostForScalar) return "it would take long";
    return version.cannot_run(shape);
}

course::Case make_matmul(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected M x N x K, for example 512x1024x2048");
    const std::size_t m = size[0];
    const std::size_t n = size[1];
    const std::size_t k = size[2];
    const day31::MatmulShape shape{m, n, k};
    const auto data = std::make_shared<Data>(m, n, k);
    const std::vector<std::int8_t> a = random_bytes(m * k, 1);
    const std::vector<std::int8_t> w = random_bytes(n * k, 2);
    data->a.copy_from(a);
    data->w.copy_from(w);
    const std::vector<std::size_t> sample = course::sampled_rows(m, kSample);
    data->expected.resize(sample.size() * n);
    day31::int8_matmul_on_cpu({sample.size(), n, k}, course::rows_of<std::int8_t>(a, sample, k), w,
                              data->expected);

    course::UsualCase<Data> usual(
        "int8_matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
        "int8 to int32", data);
    usual.output(&Data::c, [=](const Data& d, const auto& c) {
        return course::verify_exact(course::rows_of<std::int32_t>(c, sample, n), d.expected, n);
    });
    for (const day31::Version& version : day31::versions()) {
        if (version.name == "auto") continue;
        usual.add({.name = version.name,
                   .launch =
                       [=, &version](cudaStream_t stream) {
                           version.launcher.launch(data->a.matrix(m, k), data->w.matrix(n, k),
                                                   data->c.matrix(m, n), stream);
                       },
                   .work = version.work(shape),
                   .cannot_run = cannot_run(version, shape),
                   .resources = version.launcher.resources});
    }
    usual.add(
        {.name = "cublas_int8",
         .role = course::Role::kPeer,
         .launch = day31::make_cublas_int8(data->a.matrix(m, k), data->w.matrix(n, k), data->c.matrix(m, n)),
         .work = day31::versions().front().work(shape),
         .cannot_run = day31::cublas_constraint(shape)});
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day31_int8_matmul",
                                  .title = "int8 matrix products",
                                  .default_size = {256, 256, 256},
                                  .bench_sizes = {{4096, 4096, 4096}, {8192, 8192, 8192}},
                                  .make_cases = {make_matmul}};
    return course::run_program(program, argc, argv);
}
