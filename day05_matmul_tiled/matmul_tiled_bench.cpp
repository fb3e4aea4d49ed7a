// Day 5's program: every version verified and timed, beside cuBLAS and beside the best that 32 x 32 tiles can do.
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "matmul_tiled.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;

struct Data {
    explicit Data(day05::Shape s)
        : shape(s),
          a(course::make_data<float>(s.rows * s.depth, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.depth * s.cols, DataPattern::kSignedUniform, 2)),
          product(s.rows * s.cols),
          magnitude(s.rows * s.cols),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          c_device(s.rows * s.cols) {
        day05::multiply_on_cpu(shape, a, b, product, magnitude);
    }

    DeviceMatrix<const float> a_view() const { return a_device.matrix(shape.rows, shape.depth); }
    DeviceMatrix<const float> b_view() const { return b_device.matrix(shape.depth, shape.cols); }
    DeviceMatrix<float> c_view() { return c_device.matrix(shape.rows, shape.cols); }

    day05::Shape shape;
    std::vector<float> a, b;
    std::vector<double> product, magnitude;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

course::Case make_case(const course::Dims& size) {
    if (size.size() != 3)
        throw std::invalid_argument(
            "expected rows x columns x depth of the product, for example 512x512x512");
    const auto data = std::make_shared<Data>(day05::Shape{size[0], size[1], size[2]});

    course::Case result{.problem = "matmul " + std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" +
                                   std::to_string(size[2]),
                        .dtype = "float"};
    result.spoil = [data] { data->c_device.spoil(); };
    result.verify = [data] {
        course::VerifyResult verified =
            course::verify(data->c_device.to_host(), data->product, {.terms = data->shape.depth},
                           data->magnitude, data->shape.cols);
        verified.damage = data->c_device.damage();
        return verified;
    };
    for (const day05::Matmul& variant : day05::variants()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              variant.launcher(data->a_view(), data->b_view(), data->c_view(),
                                                               stream);
                                          },
                                      .work = variant.work(data->shape),
                                      .cannot_run = variant.cannot_run(data->shape)});
    }
    course::Work work = day05::variants().front().work(data->shape);
    work.requested = 0;
    result.contestants.push_back(
        {.name = "cublas",
         .role = course::Role::kPeer,
         .launch = course::make_cublas_sgemm(data->a_view(), data->b_view(), data->c_view()),
         .work = work,
         .cannot_run = course::why_no_cublas()});
    // Its blocks do whole tiles: that is its work, also where the matrix ends inside one.
    const auto whole_tiles = [](std::size_t extent) { return static_cast<double>((extent + 31) / 32 * 32); };
    result.contestants.push_back(
        {.name = "tile_limit",
         .role = course::Role::kLimit,
         .launch = [data](cudaStream_t stream) { day05::launch_tile_limit(data->shape, stream); },
         .work = {.flops = 2 * whole_tiles(size[0]) * whole_tiles(size[1]) * whole_tiles(size[2])}});
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day05_matmul_tiled",
        .title = "C = A B, FP32, row-major; size: rows x columns x depth",
        .default_size = {256, 256, 256},
        .bench_sizes = {{256, 256, 256}, {1024, 1024, 1024}, {4096, 4096, 4096}, {3001, 1000, 2003}},
        .make_cases = {make_case}};
    return course::run_program(program, argc, argv);
}
