// Minima of products of FP16 and BF16 matrices, by every version of reduce_half.hpp.
#include "reduce_half_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "reduce_half.hpp"

namespace day46 {
namespace {

constexpr std::size_t kRowsVerified = 64;  // those of which all distances are worked out
constexpr std::size_t kMostDistances = std::size_t{1} << 30;

template <class T>
std::vector<float> as_floats(const std::vector<T>& values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](T value) { return static_cast<float>(value); });
    return floats;
}

template <class T>
struct Data {
    explicit Data(const ReduceShape& s)
        : shape(s),
          a(course::make_data<T>(s.m * s.d, course::DataPattern::kSignedUniform, 1)),
          b(course::make_data<T>(s.n * s.d, course::DataPattern::kSignedUniform, 2)),
          a_floats(as_floats(a)),
          b_floats(as_floats(b)),
          a_device(std::span<const T>(a)),
          b_device(std::span<const T>(b)),
          values(s.m),
          indices(s.m) {}

    ReducedMatmulOf<T> matmul() {
        return {.operands = {.a = {std::as_const(a_device).matrix(shape.m, shape.d)},
                             .b = {std::as_const(b_device).matrix(shape.n, shape.d)},
                             .op_b = course::Op::kTranspose},
                .values = values.span(),
                .indices = indices.span()};
    }

    // Of all rows, that the product at the index is the value; of some, evenly spaced, that it is
    // the least one.
    course::VerifyResult verify() {
        const std::vector<float> got = values.to_host();
        const std::vector<std::uint32_t> at = indices.to_host();
        std::vector<double> expected(shape.m, std::numeric_limits<double>::quiet_NaN());
        std::vector<double> magnitude(shape.m);
        const std::size_t every = std::max<std::size_t>(shape.m / kRowsVerified, 1);
#pragma omp parallel for schedule(dynamic, 16)
        for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(shape.m); ++signed_row) {
            const auto row = static_cast<std::size_t>(signed_row);
            const bool all = row % every == 0;
            if (!all && at[row] >= shape.n) continue;
            for (std::size_t col = all ? 0 : at[row]; col < (all ? shape.n : at[row] + 1); ++col) {
                double sum = 0;
                double terms = 0;
                for (std::size_t i = 0; i < shape.d; ++i) {
                    const double term = static_cast<double>(a_floats[row * shape.d + i]) *
                                        static_cast<double>(b_floats[col * shape.d + i]);
                    sum += term;
                    terms += std::abs(term);
                }
                if (!(sum >= expected[row])) expected[row] = sum;
                magnitude[row] = std::max(magnitude[row], terms);
            }
        }
        // Tensor cores truncate (common/tile/half_mma.cuh).
        course::VerifyResult result =
            course::verify(got, expected, course::Bound{.terms = shape.d + 4}, magnitude);
        result.damage = values.damage() + indices.damage();
        return result;
    }

    ReduceShape shape;
    std::vector<T> a, b;
    std::vector<float> a_floats, b_floats;
    course::DeviceBuffer<T> a_device, b_device;
    course::GuardedBuffer<float> values;
    course::GuardedBuffer<std::uint32_t> indices;
};

template <class T>
course::Case make_case(const course::Dims& dims, const std::string& dtype) {
    if (dims.size() != 3 || dims[0] * dims[1] > kMostDistances) return {};
    const ReduceShape shape{.m = dims[0], .n = dims[1], .d = dims[2]};
    const auto data = std::make_shared<Data<T>>(shape);
    course::Case result{.problem = fmt::format("argmin_16_bit {} {}x{}x{}", dtype, shape.m, shape.n, shape.d),
                        .dtype = dtype};
    result.spoil = [data] {
        data->values.spoil();
        data->indices.spoil();
    };
    result.verify = [data] { return data->verify(); };
    for (const HalfReduce<T>& version : half_reduce_versions<T>()) {
        result.contestants.push_back({.name = version.name,
                                      .work = version.work(shape),
                                      .cannot_run = version.cannot_run(shape),
                                      .prepare = [data, &version](course::Contestant& me) {
                                          const auto scratch =
                                              std::make_shared<course::DeviceBuffer<std::uint64_t>>(
                                                  version.launcher.scratch_size(data->shape));
                                          me.launch = [data, &version, scratch](cudaStream_t stream) {
                                              ReducedMatmulOf<T> matmul = data->matmul();
                                              matmul.scratch = scratch->span();
                                              version.launcher.launch(matmul, stream);
                                          };
                                      }});
    }
    return result;
}

}  // namespace

course::Case make_half_case(const course::Dims& dims) {
    return make_case<__half>(dims, "half");
}

course::Case make_bfloat16_case(const course::Dims& dims) {
    return make_case<__nv_bfloat16>(dims, "bfloat16");
}

}  // namespace day46
