// The benchmark case of days 40 and 41: a day's versions and cuBLAS on the same data.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/cublas_half.hpp"
#include "common/bench/half_matmul.hpp"
#include "common/bench/matmul_sizes.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"

namespace course::half_matmul {

template <class T>
struct Data {
    explicit Data(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = make_data<T>(s.m * s.k, DataPattern::kNormal, 1);
        const auto b_host = make_data<T>(s.k * s.n, DataPattern::kNormal, 2);
        a = DeviceBuffer<T>(std::span<const T>(a_host));
        b = DeviceBuffer<T>(std::span<const T>(b_host));
        if (reference_on_host(s)) {
            multiply_on_cpu<T>(s, 1, a_host, b_host, 0, product, magnitude);
        } else {
            const DeviceBuffer<float> a_float{std::span<const float>(as_floats<T>(a_host))};
            const DeviceBuffer<float> b_float{std::span<const float>(as_floats<T>(b_host))};
            multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, product, magnitude);
        }
    }

    Gemm<T> gemm() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.k, shape.n),
                .c = c.matrix(shape.m, shape.n)};
    }

    VerifyResult verify() const {
        VerifyResult result = course::verify(
            c.to_host(), product, {.terms = shape.k, .growth = Growth::kSquareRoot}, magnitude, shape.n);
        result.damage = c.damage();
        return result;
    }

    Shape shape;
    std::vector<double> product, magnitude;
    DeviceBuffer<T> a, b;
    GuardedBuffer<float> c;
};

// cuBLAS and `versions` on the operands that `gemm` returns.
template <class T, class MakeGemm>
Case make_case_of(std::span<const Version> versions, const Shape& shape, const MakeGemm& gemm) {
    constexpr bool kHalf = std::is_same_v<T, __half>;
    Case result{.problem = (kHalf ? "half " : "bfloat16 ") + matmul_text({shape.m, shape.n, shape.k}),
                .dtype = kHalf ? "half to float" : "bfloat16 to float"};
    const std::string no_cublas = why_no_cublas();
    result.contestants.push_back(
        {.name = "cublas",
         .role = Role::kPeer,
         .launch = no_cublas.empty() ? make_cublas<T>(gemm()) : std::function<void(cudaStream_t)>(),
         .work = work_of(shape),
         .cannot_run = no_cublas});
    for (const Version& version : versions) {
        const KernelFor<T>& kernel = kernel_of<T>(version);
        std::string reason = version.cannot_run(shape);
        if (reason.empty()) reason = kernel.why_not(gemm());
        result.contestants.push_back(
            {.name = version.name,
             .launch = [gemm, &kernel](cudaStream_t stream) { kernel.launch(gemm(), stream); },
             .work = version.work(shape),
             .cannot_run = reason,
             .resources = kernel.resources});
    }
    return result;
}

// `with_handle` adds a second cuBLAS contestant, which creates its handle inside the timed region.
template <class T>
Case make_case(std::span<const Version> versions, const Dims& size, bool with_handle) {
    const auto data = std::make_shared<Data<T>>(matmul_shape(size));
    Case result = make_case_of<T>(versions, data->shape, [data] { return data->gemm(); });
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->verify(); };
    if (with_handle) {
        Contestant handle{.name = "cublas_with_handle",
                          .role = Role::kPeer,
                          .launch = [data](cudaStream_t stream) { make_cublas<T>(data->gemm())(stream); },
                          .work = work_of(data->shape),
                          .cannot_run = why_no_cublas()};
        result.contestants.insert(result.contestants.begin() + 1, std::move(handle));
    }
    return result;
}

}  // namespace course::half_matmul
