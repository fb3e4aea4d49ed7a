// Day 40's program: every version and cuBLAS, for bfloat16 and half, verified and timed side by side. Size: m x n x k.
//
//     day40_tensor_cores --sweep       twenty shapes, for `best` and cuBLAS
#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/data_pattern.hpp"
#include "common/device_buffer.hpp"
#include "common/guarded_buffer.hpp"
#include "common/machine.hpp"
#include "common/matmul_device_reference.hpp"
#include "common/program.hpp"
#include "tensor_cores.hpp"
#include "tensor_cores_peer.hpp"

namespace {

using course::DeviceBuffer;
using day40::Shape;

constexpr double kMostOnHost = 1e9;  // multiply-adds; above, the device works out the reference

template <class T>
struct Data {
    explicit Data(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = course::make_data<T>(s.m * s.k, course::DataPattern::kNormal, 1);
        const auto b_host = course::make_data<T>(s.k * s.n, course::DataPattern::kNormal, 2);
        a = DeviceBuffer<T>(std::span<const T>(a_host));
        b = DeviceBuffer<T>(std::span<const T>(b_host));
        if (course::is_cpu_stand_in() ||
            static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) <= kMostOnHost) {
            day40::multiply_on_cpu<T>(s, 1, a_host, b_host, 0, product, magnitude);
        } else {
            const DeviceBuffer<float> a_float{std::span<const float>(day40::as_floats<T>(a_host))};
            const DeviceBuffer<float> b_float{std::span<const float>(day40::as_floats<T>(b_host))};
            course::multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, product,
                                       magnitude);
        }
    }

    day40::Gemm<T> gemm() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.k, shape.n),
                .c = c.matrix(shape.m, shape.n)};
    }

    course::VerifyResult verify() const {
        course::VerifyResult result =
            course::verify(c.to_host(), product, {.terms = shape.k, .growth = course::Growth::kSquareRoot},
                           magnitude, shape.n);
        result.damage = c.damage();
        return result;
    }

    Shape shape;
    std::vector<double> product, magnitude;
    DeviceBuffer<T> a, b;
    course::GuardedBuffer<float> c;
};

// `sweep`: cuBLAS and the version that chooses, alone.
template <class T>
course::Case make_case(const course::Dims& size, bool sweep) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    constexpr bool kHalf = std::is_same_v<T, __half>;
    const auto data = std::make_shared<Data<T>>(Shape{size[0], size[1], size[2]});
    course::Case result{.problem = std::string(kHalf ? "half " : "bfloat16 ") + std::to_string(size[0]) +
                                   "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]),
                        .dtype = kHalf ? "half to float" : "bfloat16 to float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    const std::string no_cublas = day40::why_no_cublas();
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = no_cublas.empty() ? day40::make_cublas<T>(data->gemm())
                                                              : std::function<void(cudaStream_t)>(),
                                  .work = day40::versions().front().work(data->shape),
                                  .cannot_run = no_cublas});
    // What a measurement says that makes the handle where it is timed.
    if (!sweep)
        result.contestants.push_back(
            {.name = "cublas_with_handle",
             .role = course::Role::kPeer,
             .launch = [data](cudaStream_t stream) { day40::make_cublas<T>(data->gemm())(stream); },
             .work = day40::versions().front().work(data->shape),
             .cannot_run = no_cublas});
    const auto versions = day40::versions();
    for (const day40::Version& version : sweep ? versions.last(1) : versions) {
        const day40::KernelFor<T>* kernel = nullptr;
        if constexpr (kHalf) {
            kernel = &version.launcher.half;
        } else {
            kernel = &version.launcher.bfloat16;
        }
        std::string reason = version.cannot_run(data->shape);
        if (reason.empty()) reason = kernel->why_not(data->gemm());
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, kernel](cudaStream_t stream) { kernel->launch(data->gemm(), stream); },
             .work = version.work(data->shape),
             .cannot_run = reason,
             .resources = kernel->resources});
    }
    return result;
}

std::vector<course::Dims> squares(const std::vector<std::size_t>& extents) {
    std::vector<course::Dims> sizes;
    for (const std::size_t n : extents)
        sizes.push_back({n, n, n});
    return sizes;
}

// Squares; rows and columns as in language models; few rows, which is a matrix read once; long and short sums; no round number.
const std::vector<course::Dims> kSweep = {
    {512, 512, 512},    {1024, 1024, 1024},  {1536, 1536, 1536}, {2048, 2048, 2048},  {3072, 3072, 3072},
    {4096, 4096, 4096}, {6144, 6144, 6144},  {8192, 8192, 8192}, {2048, 6144, 4096},  {4096, 14336, 4096},
    {64, 4096, 4096},   {128, 8192, 8192},   {256, 4096, 14336}, {1024, 1024, 16384}, {2048, 2048, 8192},
    {4096, 4096, 512},  {4096, 4096, 14336}, {3000, 3000, 3000}, {1000, 2000, 3000},  {2047, 2049, 2051}};

void make_cases(course::Program& program, bool sweep) {
    program.make_cases = {[=](const course::Dims& size) { return make_case<__nv_bfloat16>(size, sweep); }};
    if (!sweep)
        program.make_cases.push_back([](const course::Dims& size) { return make_case<__half>(size, false); });
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day40_tensor_cores",
        .title = "C = A B on tensor cores, 16-bit factors, sums in single precision; size: m x n x k",
        .default_size = {256, 256, 256},
        .bench_sizes = squares({512, 1024, 2048, 4096, 8192}),
        .sweep_sizes = kSweep,
        .make_cases = {},  // known when the options are
        .add_options = [](CLI::App& app, course::Program& own) {
            app.callback([&] { make_cases(own, app.count("--sweep") != 0); });
        }};
    return course::run_program(program, argc, argv);
}
