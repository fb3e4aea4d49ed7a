// Day 42's program: every version and cublasLt, for INT8 and FP8 (E4M3), verified and timed side by
// side. Size: m x n x k.
//
//     day42_eight_bits --sweep       100 random shapes of either type
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/matmul_sizes.hpp"
#include "common/bench/program.hpp"
#include "common/bench/random_products.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "eight_bits.hpp"
#include "eight_bits_peer.hpp"

namespace {

using course::DeviceBuffer;
using day42::Accumulation;
using day42::Shape;

constexpr std::string_view kSweptVersion = "bytes_fitted";
constexpr std::string_view kPromotedVersion = "bytes_promoted";

// The error bound. Tensor cores keep 13 bits of a sum of FP8 where a float has 23: an error of
// at most 2^-10 of the terms' magnitude, for K of a few thousand. Promoted sums have only 128
// terms at a time, truncated independently for each 32. Four terms more are allowed, because
// the bound must hold for the worst of many elements. The stand-in sums in floats.
course::Bound bound(const Shape& shape, Accumulation accumulation) {
    if (course::is_cpu_stand_in()) return {.terms = shape.k + 1};
    if (accumulation == Accumulation::kFast) return {.terms = 1, .factor = 0x1p13};
    const std::size_t together = std::min<std::size_t>(shape.k, 128);
    const double parts = std::ceil(static_cast<double>(shape.k) / 128);
    return {.terms = 4 + course::ceil_div<std::size_t>(together, 32),
            .growth = course::Growth::kSquareRoot,
            .factor = 0x1p11 / std::sqrt(parts)};
}

template <class T>
struct Data {
    explicit Data(const Shape& s) : shape(s), product(s.m * s.n), magnitude(s.m * s.n), c(s.m * s.n) {
        const auto a_host = course::make_data<T>(s.m * s.k, course::DataPattern::kNormal, 1);
        const auto b_host = course::make_data<T>(s.n * s.k, course::DataPattern::kNormal, 2);
        a = DeviceBuffer<T>(std::span<const T>(a_host));
        b = DeviceBuffer<T>(std::span<const T>(b_host));
        if (course::reference_on_host(s)) {
            day42::multiply_on_cpu<T>(s, a_host, b_host, product, magnitude);
        } else {
            const DeviceBuffer<float> a_float{std::span<const float>(day42::as_floats<T>(a_host))};
            const DeviceBuffer<float> b_float{std::span<const float>(day42::transposed<T>(b_host, s.n, s.k))};
            course::multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, product,
                                       magnitude);
        }
    }

    day42::Product<T> multiplication() {
        return {.a = std::as_const(a).matrix(shape.m, shape.k),
                .b = std::as_const(b).matrix(shape.n, shape.k),
                .c = c.matrix(shape.m, shape.n)};
    }

    course::VerifyResult verify(Accumulation accumulation) const {
        course::VerifyResult result;
        if constexpr (std::is_integral_v<T>) {
            const std::vector<std::int32_t> exact(product.begin(), product.end());
            result = course::verify_exact(c.to_host(), std::span<const std::int32_t>(exact), shape.n);
        } else {
            result = course::verify(c.to_host(), product, bound(shape, accumulation), magnitude, shape.n);
        }
        result.damage = c.damage();
        return result;
    }

    Shape shape;
    std::vector<double> product, magnitude;
    DeviceBuffer<T> a, b;
    course::GuardedBuffer<day42::Sum<T>> c;
};

template <class T>
course::Contestant cublaslt(const std::shared_ptr<Data<T>>& data, const char* name,
                            Accumulation accumulation) {
    course::Contestant result{
        .name = name, .role = course::Role::kPeer, .cannot_run = day42::why_no_cublaslt()};
    result.work = day42::versions().front().work(data->shape);
    result.verify = [data, accumulation] { return data->verify(accumulation); };
    result.prepare = [data, accumulation](course::Contestant& contestant) {
        contestant.launch = day42::make_cublaslt<T>(data->multiplication(), accumulation);
    };
    return result;
}

// Shows what the lost digits cost.
std::string largest_errors(std::span<const course::Record> records) {
    std::vector<std::string> known;
    std::string text;
    for (const course::Record& record : records) {
        if (!record.verified || std::ranges::find(known, record.version) != known.end()) continue;
        known.push_back(record.version);
        text += fmt::format("{}{} {:.3g}", text.empty() ? "largest errors: " : ", ", record.version,
                            record.max_error);
    }
    return text + "\n";
}

template <class T>
course::Case make_case(const course::Dims& size) {
    constexpr bool kIntegers = std::is_integral_v<T>;
    const Shape shape = course::matmul_shape(size);
    const auto data = std::make_shared<Data<T>>(shape);
    course::Case result{.problem = (kIntegers ? "int8 " : "e4m3 ") + course::matmul_text(size),
                        .dtype = kIntegers ? "int8 to int32" : "e4m3 to float"};
    result.spoil = [data] { data->c.spoil(); };
    result.contestants.push_back(cublaslt(data, "cublaslt", Accumulation::kPromoted));
    if (!kIntegers) {
        result.contestants.push_back(cublaslt(data, "cublaslt_fast", Accumulation::kFast));
        result.comment = largest_errors;
    }
    for (const day42::Version& version : day42::versions()) {
        const day42::KernelFor<T>& kernel = version.launcher.of<T>();
        if (kernel.launch == nullptr) continue;
        std::string reason = version.cannot_run(shape);
        if (reason.empty()) reason = kernel.why_not(data->multiplication());
        const auto accumulation =
            version.name == kPromotedVersion ? Accumulation::kPromoted : Accumulation::kFast;
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

// The version that chooses, or the one that promotes, and cublasLt with the same accumulation.
template <class T, Accumulation kAccumulation = Accumulation::kFast>
course::Case make_sweep_case(const course::Dims& size) {
    constexpr bool kIntegers = std::is_integral_v<T>;
    const Shape shape = course::matmul_shape(size);
    const auto data = std::make_shared<course::RandomProducts<T>>(
        course::ProductShape{1, shape.m, shape.n, shape.k}, course::Op::kNone, course::Op::kTranspose);
    const auto product = [data] { return day42::Product<T>{.a = data->a(), .b = data->b(), .c = data->c()}; };
    course::Case result{.problem = (kIntegers ? "int8 " : "e4m3 ") + course::matmul_text(size),
                        .dtype = kIntegers ? "int8 to int32" : "e4m3 to float"};
    result.spoil = [data] { data->spoil(); };
    result.verify = [data, shape] { return data->verify(bound(shape, kAccumulation)); };
    const course::Work work = day42::versions().front().work(shape);
    course::Contestant peer{.name = "cublaslt",
                            .role = course::Role::kPeer,
                            .work = work,
                            .cannot_run = day42::why_no_cublaslt()};
    peer.prepare = [product](course::Contestant& contestant) {
        contestant.launch = day42::make_cublaslt<T>(product(), kAccumulation);
    };
    result.contestants.push_back(peer);
    constexpr bool kFast = kAccumulation == Accumulation::kFast;
    const day42::Version& version =
        course::find_version(day42::versions(), kFast ? kSweptVersion : kPromotedVersion);
    const day42::KernelFor<T>& kernel = version.launcher.of<T>();
    std::string reason = version.cannot_run(shape);
    if (reason.empty()) reason = kernel.why_not(product());
    result.contestants.push_back(
        {.name = version.name,
         .launch = [product, &kernel](cudaStream_t stream) { kernel.launch(product(), stream); },
         .work = work,
         .cannot_run = reason});
    return result;
}

template <class T, Accumulation kAccumulation = Accumulation::kFast>
course::Distribution products(const std::string& name) {
    return {.name = name,
            .text = std::string(course::kProductsText) + "; multiples of 16",
            .most = std::size_t{1} << 38,
            .most_on_cpu = 1 << 22,
            .ours = {std::string(kSweptVersion), std::string(kPromotedVersion)},
            .draw = [](course::Draw& draw) -> course::RandomProblem {
                const auto [kind, size] = course::draw_product(draw, 16);
                return {kind, size, [size = size] { return make_sweep_case<T, kAccumulation>(size); }};
            }};
}

// 512 to 8192. Rows are 16-byte aligned, as the library requires.
constexpr course::RandomShapes kSweep = {.count = 100, .least = 9, .most = 13, .thinnest = 9, .multiple = 16};

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day42_eight_bits",
        .title = "C = A B^T on tensor cores, 8-bit operands; size: m x n x k",
        .default_size = {256, 256, 256},
        .bench_sizes = course::squares({512, 1024, 2048, 4096, 8192}),
        .sweep_sizes = course::random_matmuls(kSweep),
        .make_cases = {make_case<std::int8_t>, make_case<__nv_fp8_e4m3>},
        .sweep_cases = {make_sweep_case<std::int8_t>, make_sweep_case<__nv_fp8_e4m3>},
        .sweep_repeats = course::kSweepRepeats,
        .distributions = {products<std::int8_t>("int8"), products<__nv_fp8_e4m3>("e4m3"),
                          products<__nv_fp8_e4m3, Accumulation::kPromoted>("e4m3 promoted")}};
    return course::run_program(program, argc, argv);
}
