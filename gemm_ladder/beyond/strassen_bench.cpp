// One level of Strassen's method beside the dispatcher (step 14) and cuBLAS: from which size does
// it pay, and what is its error?
//
//     gemm_ladder_strassen --size 512
//     gemm_ladder_strassen --bench --json strassen.jsonl
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../scratch.hpp"
#include "../sgemm.hpp"
#include "../sgemm_device_reference.hpp"
#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "strassen.hpp"

namespace {

struct Data {
    explicit Data(const gemm::Shape& s) : shape(s), c(s.m * s.n), product(s.m * s.n), magnitude(s.m * s.n) {
        // In [-1, 1).
        const auto make = [](std::size_t size, std::uint64_t seed) {
            const auto values = course::make_data<float>(size, course::DataPattern::kSignedUniform, seed);
            return course::DeviceBuffer<float>(std::span<const float>(values));
        };
        a = make(s.m * s.k, 1);
        b = make(s.k * s.n, 2);
        gemm::multiply_on_device(shape, 1, std::as_const(a).span(), std::as_const(b).span(), 0, product,
                                 magnitude);
    }

    gemm::Sgemm gemm() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.k, shape.n),
                .c = c.matrix(shape.m, shape.n)};
    }

    // Errors of at most the bound divided by the square root of its number of terms, with which
    // roundings that are about independent stay below it (common/check/verify.hpp).
    course::VerifyResult verify(double bound) {
        constexpr double kEpsilon = 1.0 / (1 << 23);
        const double allowed = bound / std::sqrt(static_cast<double>(shape.k)) / kEpsilon;
        course::VerifyResult result = course::verify(c.to_host(), product, {.terms = 1, .factor = 1},
                                                     std::vector<double>(product.size(), allowed), shape.n);
        result.damage = c.damage();
        largest_error = result.max_error;
        return result;
    }

    gemm::Shape shape;
    course::DeviceBuffer<float> a, b;
    course::GuardedBuffer<float> c;
    std::vector<double> product, magnitude;
    double largest_error = 0;
};

course::Case make_case(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    const auto data = std::make_shared<Data>(gemm::Shape{size[0], size[1], size[2]});
    const gemm::Step& step = course::find_version(gemm::beyond(), "14_dispatcher");
    course::Case result{.problem = fmt::format("strassen {}", fmt::join(size, "x")), .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    const auto add = [&](const std::string& name, const std::function<void(cudaStream_t)>& launch,
                         double bound, course::Role role) {
        result.contestants.push_back({.name = name,
                                      .role = role,
                                      .launch = launch,
                                      .work = step.work(data->shape),
                                      .cannot_run = launch ? "" : course::why_no_cublas(),
                                      .verify = [data, bound] { return data->verify(bound); },
                                      .figures =
                                          [data] {
                                              return course::Figures{{"largest error", data->largest_error}};
                                          }});
    };
    const auto add_kernel = [&](const std::string& name, const gemm::Kernel& kernel, double bound) {
        const auto scratch = std::make_shared<gemm::ScratchMemory>(kernel.scratch(data->shape));
        add(
            name,
            [data, scratch, launch = kernel.launch](cudaStream_t stream) {
                gemm::Sgemm gemm = data->gemm();
                gemm.scratch = scratch->view();
                launch(gemm, stream);
            },
            bound, course::Role::kOurs);
    };
    const double of_sums = gemm::sum_error(data->shape.k, 1, 1);
    add_kernel("14_dispatcher", step.launcher, of_sums);
    add_kernel("strassen", gemm::strassen(), gemm::strassen_error(data->shape.k, 1, 1));
    const gemm::Sgemm gemm = data->gemm();
    add("cublas", course::make_cublas_sgemm(gemm.a, gemm.b, gemm.c), of_sums, course::Role::kPeer);
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<course::Dims> sizes;
    for (const std::size_t n : {1024, 1536, 2048, 3072, 4096, 4097, 6144, 8192, 12288})
        sizes.push_back({n, n, n});
    const course::Program program{.day = "gemm_ladder_strassen",
                                  .title = "C = A B by one level of Strassen's method, FP32; size: m x n x k",
                                  .default_size = {200, 200, 200},
                                  .bench_sizes = sizes,
                                  .make_cases = {make_case}};
    return course::run_program(program, argc, argv);
}
