// The ladder's program: every step verified and timed beside cuBLAS.
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/data_pattern.hpp"
#include "common/device_buffer.hpp"
#include "common/guarded_buffer.hpp"
#include "common/program.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"
#include "sgemm_peer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;

struct Data {
    explicit Data(const gemm::Shape& s)
        : shape(s),
          a(course::make_data<float>(s.m * s.k, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.k * s.n, DataPattern::kSignedUniform, 2)),
          product(s.m * s.n),
          magnitude(s.m * s.n),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          c_device(s.m * s.n) {
        gemm::multiply_on_cpu(shape, 1, a, b, 0, product, magnitude);
    }

    gemm::Sgemm gemm() {
        return {.a = std::as_const(a_device).matrix(shape.m, shape.k),
                .b = std::as_const(b_device).matrix(shape.k, shape.n),
                .c = c_device.matrix(shape.m, shape.n)};
    }

    gemm::Shape shape;
    std::vector<float> a, b;
    std::vector<double> product, magnitude;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

course::Case make_case(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    const auto data = std::make_shared<Data>(gemm::Shape{size[0], size[1], size[2]});

    course::Case result{.problem = "sgemm " + std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" +
                                   std::to_string(size[2]),
                        .dtype = "float"};
    result.spoil = [data] { data->c_device.spoil(); };
    result.verify = [data] {
        course::VerifyResult verified =
            course::verify(data->c_device.to_host(), data->product, {.terms = data->shape.k}, data->magnitude,
                           data->shape.n);
        verified.damage = data->c_device.damage();
        return verified;
    };
    const std::string no_cublas = gemm::why_no_cublas();
    result.contestants.push_back(
        {.name = "00_cublas",
         .role = course::Role::kPeer,
         .launch = no_cublas.empty() ? gemm::make_cublas(data->gemm()) : std::function<void(cudaStream_t)>(),
         .work = gemm::steps().front().work(data->shape),
         .cannot_run = no_cublas});
    for (const auto& list : {gemm::steps(), gemm::beyond()}) {
        for (const gemm::Step& step : list) {
            const auto scratch = std::make_shared<gemm::ScratchMemory>(step.launcher.scratch(data->shape));
            result.contestants.push_back({.name = step.name,
                                          .launch =
                                              [data, &step, scratch](cudaStream_t stream) {
                                                  gemm::Sgemm gemm = data->gemm();
                                                  gemm.scratch = scratch->view();
                                                  step.launcher.launch(gemm, stream);
                                              },
                                          .work = step.work(data->shape),
                                          .cannot_run = step.cannot_run(data->shape)});
        }
    }
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "gemm_ladder",
                                  .title = "C = alpha A B + beta C, FP32, row-major; size: m x n x k",
                                  .default_size = {256, 256, 256},
                                  .bench_sizes = {{4096, 4096, 4096}},
                                  .make_cases = {make_case}};
    return course::run_program(program, argc, argv);
}
