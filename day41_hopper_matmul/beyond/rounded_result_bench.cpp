#include "beyond/rounded_result_bench.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "beyond/rounded_result.hpp"
#include "common/bench/cublas_half.hpp"
#include "common/bench/matmul_sizes.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/device/device_buffer.hpp"

namespace day41 {
namespace {

template <class T>
struct Data {
    explicit Data(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = course::make_data<T>(s.m * s.k, course::DataPattern::kNormal, 1);
        const auto b_host = course::make_data<T>(s.k * s.n, course::DataPattern::kNormal, 2);
        a = course::DeviceBuffer<T>(std::span<const T>(a_host));
        b = course::DeviceBuffer<T>(std::span<const T>(b_host));
        if (course::reference_on_host(s)) {
            course::half_matmul::multiply_on_cpu<T>(s, 1, a_host, b_host, 0, product, magnitude);
        } else {
            const course::DeviceBuffer<float> a_float{
                std::span<const float>(course::half_matmul::as_floats<T>(a_host))};
            const course::DeviceBuffer<float> b_float{
                std::span<const float>(course::half_matmul::as_floats<T>(b_host))};
            course::multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, product,
                                       magnitude);
        }
    }

    RoundedMatmul<T> matmul() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.k, shape.n),
                .c = c.matrix(shape.m, shape.n)};
    }

    course::VerifyResult verify() const {
        course::VerifyResult result =
            verify_rounded<T>(c.to_host(), product, magnitude,
                              {.terms = shape.k, .growth = course::Growth::kSquareRoot}, shape.n);
        result.damage = c.damage();
        return result;
    }

    Shape shape;
    std::vector<double> product, magnitude;
    course::DeviceBuffer<T> a, b;
    course::GuardedBuffer<T> c;
};

}  // namespace

template <class T>
course::Case make_rounded_case(const course::Dims& dims) {
    const std::string type = std::is_same_v<T, __half> ? "half" : "bfloat16";
    const Shape shape = course::matmul_shape(dims);
    const auto data = std::make_shared<Data<T>>(shape);
    course::Case result{.problem = type + "_result " + course::matmul_text(dims),
                        .dtype = type + " to " + type};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    const std::string no_cublas = course::half_matmul::why_no_cublas();
    std::function<void(cudaStream_t)> cublas;
    if (no_cublas.empty()) {
        const RoundedMatmul<T> matmul = data->matmul();
        cublas = course::half_matmul::make_cublas<T>(matmul.a, matmul.b, matmul.c);
    }
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = cublas,
                                  .work = rounded_versions().front().work(shape),
                                  .cannot_run = no_cublas});
    for (const RoundedVersion& version : rounded_versions()) {
        const RoundedKernelFor<T>& kernel = version.launcher.of<T>();
        std::string reason = version.cannot_run(shape);
        if (reason.empty()) reason = kernel.why_not(data->matmul());
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &kernel](cudaStream_t stream) { kernel.launch(data->matmul(), stream); },
             .work = version.work(shape),
             .cannot_run = reason,
             .resources = kernel.resources});
    }
    return result;
}

template course::Case make_rounded_case<__half>(const course::Dims&);
template course::Case make_rounded_case<__nv_bfloat16>(const course::Dims&);

}  // namespace day41
