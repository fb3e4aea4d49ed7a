// Day 5's program: every version verified and timed, beside cuBLAS and the limit of 32 x 32 tiles.
#include <memory>
#include <string>
#include <vector>

#include "beyond/tile_limit.hpp"
#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "matmul_tiled.hpp"
#include "matmul_tiled_plain_loop.hpp"

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
    course::require(
        size.size() == 3, "size has ", size.size(),
        " numbers; expected three, rows x columns x depth of the product, for example 512x512x512");
    const day05::Shape shape{size[0], size[1], size[2]};
    const std::string extents =
        std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);

    course::UsualCase<Data> usual("matmul " + extents, "float", std::make_shared<Data>(shape));
    const auto verify = [](const Data& data, const auto& got) {
        return course::verify(got, data.product, {.terms = data.shape.depth}, data.magnitude,
                              data.shape.cols);
    };
    usual.output(&Data::c_device, verify);
    usual.versions(day05::versions(), shape, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.a_view(), data.b_view(), data.c_view(), stream);
    });
    course::Work work = day05::versions().front().work(shape);
    work.requested = 0;  // what cuBLAS requests is not known
    Data& data = *usual.data;
    usual.add({.name = "cublas",
               .role = course::Role::kPeer,
               .launch = course::make_cublas_sgemm(data.a_view(), data.b_view(), data.c_view()),
               .work = work,
               .cannot_run = course::why_no_cublas()});
    constexpr double kSecondsPerFlop = 5e-11;
    usual.plain_loop(
        work, work.flops * kSecondsPerFlop,
        [shape] { return course::unwritten<float>(shape.rows * shape.cols); },
        [](const Data& d, std::span<float> c, int threads) {
            day05::multiply_plainly(d.shape, d.a, d.b, c, threads);
        },
        verify);
    usual.add({.name = "tile_limit",
               .role = course::Role::kLimit,
               .launch = [shape](cudaStream_t stream) { day05::launch_tile_limit(shape, stream); },
               .work = day05::tile_limit_work(shape)});
    return usual.result;
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
