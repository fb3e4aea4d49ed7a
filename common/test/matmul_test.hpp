// Requirements of a product C = A B of float matrices, shared by the tests of several days.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace course {

// launch(a, b, c) must refuse matrices that do not fit together, and a C that overlaps A or B. Its
// messages start with `name`.
template <class Launch>
void expect_misfits_refused(const std::string& name, const Launch& launch) {
    DeviceBuffer<float> memory{std::span<const float>(std::vector<float>(64))};
    const auto matrix = [&](std::size_t rows, std::size_t cols, std::size_t offset) {
        return DeviceMatrix<float>(memory.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto message_of = [&](auto a, auto b, auto c) { return refusal([&] { launch(a, b, c); }); };
    const std::string expected = "; expected A: M x K, B: K x N, C: M x N";
    EXPECT_EQ(message_of(matrix(2, 3, 0), matrix(4, 5, 8), matrix(2, 5, 32)),
              name + ": A is 2 x 3, B is 4 x 5, C is 2 x 5" + expected);
    EXPECT_EQ(message_of(matrix(2, 3, 0), matrix(3, 5, 8), matrix(3, 5, 32)),
              name + ": A is 2 x 3, B is 3 x 5, C is 3 x 5" + expected);
    EXPECT_EQ(message_of(matrix(2, 3, 0), matrix(3, 5, 8), matrix(2, 4, 32)),
              name + ": A is 2 x 3, B is 3 x 5, C is 2 x 4" + expected);
    EXPECT_EQ(message_of(matrix(2, 2, 0), matrix(2, 2, 8), matrix(2, 2, 3)),
              name + ": C overlaps A; expected no common element");
    EXPECT_EQ(message_of(matrix(2, 2, 0), matrix(2, 2, 8), matrix(2, 2, 11)),
              name + ": C overlaps B; expected no common element");
    EXPECT_EQ(message_of(matrix(2, 2, 0), matrix(2, 2, 8), matrix(2, 2, 4)), "") << "C beside A";
    CUDA_CHECK(cudaDeviceSynchronize());
}

// A has 8.6 GB, and only its last row is not 0. The offset of its last element needs more than 31
// bits, in elements and in bytes. multiply_on_cpu(last row, B, product, magnitude): the last row of
// C; `growth` as in Bound.
template <class Launch, class MultiplyOnCpu>
void expect_right_beyond_31_bits(const Launch& launch, const MultiplyOnCpu& multiply_on_cpu,
                                 Growth growth = Growth::kLinear) {
    constexpr std::size_t kRows = 65537;
    constexpr std::size_t kDepth = 32771;
    if (const std::string reason = why_not_so_large(kRows * kDepth * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> a(kRows * kDepth);
    CUDA_CHECK(cudaMemset(a.data(), 0, a.bytes()));
    const std::vector<float> last_row = make_data<float>(kDepth, DataPattern::kSignedUniform, 31);
    CUDA_CHECK(cudaMemcpy(a.data() + (kRows - 1) * kDepth, last_row.data(), kDepth * sizeof(float),
                          cudaMemcpyHostToDevice));
    const std::vector<float> b = make_data<float>(kDepth * 3, DataPattern::kSignedUniform, 32);
    const DeviceBuffer<float> b_device{std::span(b)};
    GuardedBuffer<float> c(kRows * 3);
    launch(a.matrix(kRows, kDepth), b_device.matrix(kDepth, 3), c.matrix(kRows, 3));

    std::vector<double> expected(kRows * 3, 0.0);
    std::vector<double> magnitude(kRows * 3, 0.0);
    multiply_on_cpu(last_row, b, std::span(expected).last(3), std::span(magnitude).last(3));
    VerifyResult result = verify(c.to_host(), expected, {.terms = kDepth, .growth = growth}, magnitude, 3);
    result.damage = c.damage();
    EXPECT_TRUE(result.ok()) << result.message();
}

}  // namespace course
