// Every step on shapes that take a GPU: around 4096, tall, wide, deep, and further than 31 bits
// count.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/verify.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using gemm::Shape;

constexpr std::uint64_t kSeed = 41;

// Operands and their product, in device memory: all steps multiply the same.
struct Problem {
    explicit Problem(const Shape& s)
        : shape(s),
          a(std::span<const float>(course::make_data<float>(s.m * s.k, DataPattern::kSignedUniform, kSeed))),
          b(std::span<const float>(
              course::make_data<float>(s.k * s.n, DataPattern::kSignedUniform, kSeed + 1))),
          product(s.m * s.n),
          magnitude(s.m * s.n) {
        course::multiply_batch_on_device(1, s.m, s.n, s.k, 1, a.span(), b.span(), product.span(),
                                         magnitude.span());
    }

    Shape shape;
    DeviceBuffer<float> a, b;
    DeviceBuffer<double> product, magnitude;
};

class LargeShapes : public course::DeviceTestWithParam<const gemm::Step*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const gemm::Step*>::SetUp();
        if (IsSkipped()) return;
        if (course::is_cpu_stand_in())
            GTEST_SKIP() << "needs a GPU: 10^11 multiply-adds would have to run on CPU threads";
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // The result of the step, with everything packed. C begins as NaN and is not read.
    course::GuardedBuffer<float> multiply(const Shape& shape, const DeviceBuffer<float>& a,
                                          const DeviceBuffer<float>& b) const {
        course::GuardedBuffer<float> c(shape.m * shape.n);
        gemm::ScratchMemory scratch(GetParam()->launcher.scratch(shape));
        GetParam()->launcher.launch({.a = a.matrix(shape.m, shape.k),
                                     .b = b.matrix(shape.k, shape.n),
                                     .c = c.matrix(shape.m, shape.n),
                                     .scratch = scratch.view()},
                                    nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        return c;
    }
};

INSTANTIATE_TEST_SUITE_P(Ladder, LargeShapes, course::each_of(gemm::steps()), course::VersionName());
INSTANTIATE_TEST_SUITE_P(Beyond, LargeShapes, course::each_of(gemm::beyond()), course::VersionName());

TEST_P(LargeShapes, AroundTileBordersTallWideAndDeep) {
    static const Shape shapes[] = {{4095, 4095, 4095}, {4097, 4097, 4097}, {4096, 4096, 4096},
                                   {1 << 20, 3, 65},   {5, 1 << 20, 33},   {65, 67, 1 << 20},
                                   {100003, 129, 127}};
    static const std::vector<Problem> problems(std::begin(shapes), std::end(shapes));
    for (const Problem& problem : problems) {
        const Shape& shape = problem.shape;
        course::GuardedBuffer<float> c = multiply(shape, problem.a, problem.b);
        course::VerifyResult result =
            course::verify_on_device(c.span(), problem.product.span(),
                                     {.terms = shape.k, .growth = course::Growth::kSquareRoot, .factor = 8},
                                     problem.magnitude.span(), shape.n);
        result.damage = c.damage();
        EXPECT_TRUE(result.ok()) << shape.m << " x " << shape.n << " x " << shape.k << ": "
                                 << result.message();
    }
}

// A of 8.6 GB, and then B: their last elements are further from the first than 31 bits count, in
// elements.
TEST_P(LargeShapes, MoreElementsThan31BitsCount) {
    constexpr std::size_t kLong = 65537;
    constexpr std::size_t kDepth = 32771;
    if (const std::string reason = course::why_not_so_large(kLong * kDepth * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> large(kLong * kDepth);
    CUDA_CHECK(cudaMemset(large.data(), 0, large.bytes()));
    const auto end = course::make_data<float>(kDepth, DataPattern::kSignedUniform, kSeed);
    CUDA_CHECK(cudaMemcpy(large.data() + large.size() - kDepth, end.data(), kDepth * sizeof(float),
                          cudaMemcpyHostToDevice));
    const DeviceBuffer<float> ones{std::span<const float>(std::vector<float>(3 * kLong, 1.0f))};

    // The last row of A times a column of ones: the sum of `end`. B: each row k counts once; only
    // the last ones are not zero.
    const std::vector<float> tall = multiply({kLong, 3, kDepth}, large, ones).to_host();
    double sum = 0;
    double size = 0;
    for (const float value : end) {
        sum += static_cast<double>(value);
        size += std::abs(static_cast<double>(value));
    }
    const double allowed = 1e-7 * size * 8;
    EXPECT_EQ(tall[tall.size() - 4], 0.0f);
    EXPECT_NEAR(static_cast<double>(tall.back()), sum, allowed);

    const std::vector<float> wide = multiply({3, kDepth, kLong}, ones, large).to_host();
    for (const std::size_t col : {std::size_t{0}, kDepth / 2, kDepth - 1})
        EXPECT_EQ(wide[2 * kDepth + col], end[col]) << "column " << col;
}

}  // namespace
