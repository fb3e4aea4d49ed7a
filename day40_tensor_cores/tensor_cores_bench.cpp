// Day 40's program: every version and cuBLAS, for bfloat16 and half, and for 8-bit factors, verified and timed side by side. Size: m x n x k.
//
//     day40_tensor_cores --sweep       twenty shapes, for `best` and cuBLAS
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "eight_bit/eight_bit.hpp"
#include "eight_bit/eight_bit_peer.hpp"
#include "tensor_cores.hpp"
#include "tensor_cores_peer.hpp"

namespace {

using course::DeviceBuffer;
using day40::Shape;

constexpr double kMostOnHost = 1e9;  // multiply-adds; above, the device works out the reference

bool on_host(const Shape& s) {
    return course::is_cpu_stand_in() ||
           static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) <= kMostOnHost;
}

Shape shape_of(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    return {size[0], size[1], size[2]};
}

std::string text_of(const course::Dims& size) {
    return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

template <class T>
struct Data {
    explicit Data(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = course::make_data<T>(s.m * s.k, course::DataPattern::kNormal, 1);
        const auto b_host = course::make_data<T>(s.k * s.n, course::DataPattern::kNormal, 2);
        a = DeviceBuffer<T>(std::span<const T>(a_host));
        b = DeviceBuffer<T>(std::span<const T>(b_host));
        if (on_host(s)) {
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

// kSweep: cuBLAS and the version that chooses, alone.
template <class T, bool kSweep = false>
course::Case make_case(const course::Dims& size) {
    constexpr bool kHalf = std::is_same_v<T, __half>;
    const auto data = std::make_shared<Data<T>>(shape_of(size));
    course::Case result{.problem = (kHalf ? "half " : "bfloat16 ") + text_of(size),
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
    if (!kSweep)
        result.contestants.push_back(
            {.name = "cublas_with_handle",
             .role = course::Role::kPeer,
             .launch = [data](cudaStream_t stream) { day40::make_cublas<T>(data->gemm())(stream); },
             .work = day40::versions().front().work(data->shape),
             .cannot_run = no_cublas});
    const auto versions = day40::versions();
    for (const day40::Version& version : kSweep ? versions.last(1) : versions) {
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

// --- 8-bit factors ---------------------------------------------------------------------------------------------------

namespace bytes = day40::eight_bit;

template <class T>
struct Bytes {
    explicit Bytes(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = course::make_data<T>(s.m * s.k, course::DataPattern::kNormal, 1);
        const auto b_host = course::make_data<T>(s.n * s.k, course::DataPattern::kNormal, 2);
        a = DeviceBuffer<T>(std::span<const T>(a_host));
        b = DeviceBuffer<T>(std::span<const T>(b_host));
        if (on_host(s)) {
            bytes::multiply_on_cpu<T>(s, a_host, b_host, product, magnitude);
        } else {
            const DeviceBuffer<float> a_float{std::span<const float>(bytes::as_floats<T>(a_host))};
            const DeviceBuffer<float> b_float{std::span<const float>(bytes::transposed<T>(b_host, s.n, s.k))};
            course::multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, product,
                                       magnitude);
        }
    }

    bytes::Product<T> multiplication() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.n, shape.k),
                .c = c.matrix(shape.m, shape.n)};
    }

    // What a sum may be off by. Tensor cores keep 13 digits of a sum of FP8 where a float has 23: 2^-10 of the terms' magnitude at most, where K is
    // a few thousand. Of promoted sums only 128 terms at a time are summed that way, each 32 of them cut off independently of others, and four
    // steps more, since there are many elements and the worst counts. The stand-in's sums are floats.
    course::Bound bound(bytes::Accumulation accumulation) const {
        if (course::is_cpu_stand_in()) return {.terms = shape.k + 1};
        if (accumulation == bytes::Accumulation::kFast) return {.terms = 1, .factor = 0x1p13};
        const std::size_t together = std::min<std::size_t>(shape.k, 128);
        const double parts = std::ceil(static_cast<double>(shape.k) / 128);
        return {.terms = 4 + course::ceil_div<std::size_t>(together, 32),
                .growth = course::Growth::kSquareRoot,
                .factor = 0x1p11 / std::sqrt(parts)};
    }

    course::VerifyResult verify(bytes::Accumulation accumulation) const {
        course::VerifyResult result;
        if constexpr (std::is_integral_v<T>) {
            const std::vector<std::int32_t> exact(product.begin(), product.end());
            result = course::verify_exact(c.to_host(), std::span<const std::int32_t>(exact), shape.n);
        } else {
            result = course::verify(c.to_host(), product, bound(accumulation), magnitude, shape.n);
        }
        result.damage = c.damage();
        return result;
    }

    Shape shape;
    std::vector<double> product, magnitude;
    DeviceBuffer<T> a, b;
    course::GuardedBuffer<bytes::Sum<T>> c;
};

template <class T>
course::Contestant cublaslt(const std::shared_ptr<Bytes<T>>& data, const char* name,
                            bytes::Accumulation accumulation) {
    course::Contestant result{
        .name = name, .role = course::Role::kPeer, .cannot_run = bytes::why_no_cublaslt()};
    result.work = bytes::versions().front().work(data->shape);
    result.verify = [data, accumulation] { return data->verify(accumulation); };
    result.prepare = [data, accumulation](course::Contestant& contestant) {
        contestant.launch = bytes::make_cublaslt<T>(data->multiplication(), accumulation);
    };
    return result;
}

// What the digits are worth that are not kept.
std::string largest_errors(std::span<const course::Record> records) {
    std::vector<std::string> known;
    std::string text;
    for (const course::Record& record : records) {
        if (!record.verified || std::ranges::find(known, record.variant) != known.end()) continue;
        known.push_back(record.variant);
        text += fmt::format("{}{} {:.3g}", text.empty() ? "largest errors: " : ", ", record.variant,
                            record.max_error);
    }
    return text + "\n";
}

template <class T>
course::Case make_case_of_bytes(const course::Dims& size) {
    constexpr bool kIntegers = std::is_integral_v<T>;
    const Shape shape = shape_of(size);
    const auto data = std::make_shared<Bytes<T>>(shape);
    course::Case result{.problem = (kIntegers ? "int8 " : "e4m3 ") + text_of(size),
                        .dtype = kIntegers ? "int8 to int32" : "e4m3 to float"};
    result.spoil = [data] { data->c.spoil(); };
    result.contestants.push_back(cublaslt(data, "cublaslt", bytes::Accumulation::kPromoted));
    if (!kIntegers) {
        result.contestants.push_back(cublaslt(data, "cublaslt_fast", bytes::Accumulation::kFast));
        result.comment = largest_errors;
    }
    for (const bytes::Version& version : bytes::versions()) {
        const bytes::KernelFor<T>& kernel = version.launcher.of<T>();
        if (kernel.launch == nullptr) continue;
        std::string reason = version.cannot_run(shape);
        if (reason.empty()) reason = kernel.why_not(data->multiplication());
        const auto accumulation =
            version.name == "bytes_promoted" ? bytes::Accumulation::kPromoted : bytes::Accumulation::kFast;
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data,
                        &kernel](cudaStream_t stream) { kernel.launch(data->multiplication(), stream); },
             .work = version.work(shape),
             .cannot_run = reason,
             .verify = [data, accumulation] { return data->verify(accumulation); },
             .resources = kernel.resources});
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
const std::vector<course::Dims> kSweepSizes = {
    {512, 512, 512},    {1024, 1024, 1024},  {1536, 1536, 1536}, {2048, 2048, 2048},  {3072, 3072, 3072},
    {4096, 4096, 4096}, {6144, 6144, 6144},  {8192, 8192, 8192}, {2048, 6144, 4096},  {4096, 14336, 4096},
    {64, 4096, 4096},   {128, 8192, 8192},   {256, 4096, 14336}, {1024, 1024, 16384}, {2048, 2048, 8192},
    {4096, 4096, 512},  {4096, 4096, 14336}, {3000, 3000, 3000}, {1000, 2000, 3000},  {2047, 2049, 2051}};

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day40_tensor_cores",
        .title = "C = A B on tensor cores, factors of 16 and 8 bits; size: m x n x k",
        .default_size = {256, 256, 256},
        .bench_sizes = squares({512, 1024, 2048, 4096, 8192}),
        .sweep_sizes = kSweepSizes,
        .make_cases = {make_case<__nv_bfloat16>, make_case<__half>, make_case_of_bytes<std::int8_t>,
                       make_case_of_bytes<__nv_fp8_e4m3>},
        .sweep_cases = {make_case<__nv_bfloat16, true>}};
    return course::run_program(program, argc, argv);
}
