// Block-wise codes and scales against the CPU, bit for bit, there and back.
#include "blockwise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::GuardedBuffer;
using course::GuardedMatrix;
using course::refusal;
using day30::BlockFormat;
using day30::Code;
using Layout = course::MatrixLayout;

constexpr std::uint64_t kSeed = 32;

class BlockTest : public course::DeviceTestWithParam<BlockFormat> {
  protected:
    template <class T>
    void there_and_back(std::size_t rows, std::size_t cols, const std::vector<T>& in,
                        Layout layout = {}) const {
        const BlockFormat format = GetParam();
        const std::string what = std::to_string(rows) + " x " + std::to_string(cols);
        std::vector<std::uint8_t> codes(rows * format.bytes(cols));
        std::vector<float> scales(rows * format.scales(cols));
        day30::quantize_blocks_on_cpu<T>(format, rows, cols, in, codes, scales);

        GuardedMatrix<T> x(in, rows, cols, layout);
        GuardedMatrix<std::uint8_t> q(rows, format.bytes(cols), layout);
        GuardedMatrix<float> s(rows, format.scales(cols), layout);
        day30::quantize_blocks<T>(format, x.view(), q.view(), s.view(), nullptr);
        const course::VerifyResult same = course::verify_exact(q.packed(), codes, format.bytes(cols));
        EXPECT_TRUE(same.ok()) << what << ", bytes of codes: " << same.message();
        EXPECT_EQ(q.damage() + s.damage(), "") << what;
        EXPECT_TRUE(x.unchanged());
        const std::vector<double> exact(scales.begin(), scales.end());
        const course::VerifyResult same_scales = course::verify(s.packed(), exact, {.factor = 0});
        EXPECT_TRUE(same_scales.ok()) << what << ", scales: " << same_scales.message();

        std::vector<double> back(in.size());
        day30::dequantize_blocks_on_cpu(format, rows, cols, codes, scales, back);
        GuardedMatrix<T> y(rows, cols, layout);
        day30::dequantize_blocks<T>(format, q.view(), s.view(), y.view(), nullptr);
        std::vector<double> magnitude;
        for (double& value : back) {
            if (std::is_same_v<T, __half> && std::abs(value) >= 65520) value = std::copysign(INFINITY, value);
            magnitude.push_back(std::isfinite(value) ? std::abs(value) : 0);
        }
        const course::VerifyResult dequantized =
            course::verify(y.packed(), back, {.factor = 1}, magnitude, cols);
        EXPECT_TRUE(dequantized.ok()) << what << ", back: " << dequantized.message();
        EXPECT_EQ(y.damage(), "") << what;
    }

    void both_types(std::size_t rows, std::size_t cols, DataPattern pattern, Layout layout = {}) const {
        there_and_back<float>(rows, cols, course::make_data<float>(rows * cols, pattern, kSeed), layout);
        there_and_back<__half>(rows, cols, course::make_data<__half>(rows * cols, pattern, kSeed), layout);
    }
};

std::vector<BlockFormat> formats() {
    std::vector<BlockFormat> all;
    for (const Code code : {Code::kInt8, Code::kInt4, Code::kNf4})
        for (const std::size_t block : {16, 32, 64, 128, 256})
            all.push_back({code, block});
    return all;
}

INSTANTIATE_TEST_SUITE_P(DayThirty, BlockTest, testing::ValuesIn(formats()), [](const auto& test) {
    return day30::name(test.param.code) + "_" + std::to_string(test.param.block);
});

TEST_P(BlockTest, Sizes) {
    for (const std::size_t cols :
         {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 129, 255, 256, 257, 1031})
        both_types(3, cols, DataPattern::kNormal);
    for (const std::size_t rows : {0, 1, 33})
        both_types(rows, 24, DataPattern::kSignedUniform);
}

// More than 2^32 values on the CPU, there and back: only the blocks of the last rows run.
TEST_P(BlockTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const BlockFormat format = GetParam();
    constexpr std::size_t kCols = 4096;
    constexpr std::size_t kRows = (std::size_t{1} << 32) / kCols * 2 + 3;  // 2^32 bytes of 4-bit codes
    const std::vector<double> end = {1};
    const auto in = course::make_data<__half>(kCols, DataPattern::kNormal, kSeed);
    std::vector<std::uint8_t> codes(format.bytes(kCols));
    std::vector<float> scales(format.scales(kCols));
    day30::quantize_blocks_on_cpu<__half>(format, 1, kCols, in, codes, scales);
    std::vector<double> back(kCols);
    day30::dequantize_blocks_on_cpu(format, 1, kCols, codes, scales, back);

    const course::LargeArray<__half> x(kRows * kCols, 16 * kCols, end), y(kRows * kCols, 16 * kCols, end);
    const course::LargeArray<std::uint8_t> q(kRows * codes.size(), 16 * codes.size(), end);
    const course::LargeArray<float> s(kRows * scales.size(), 16 * scales.size(), end);
    std::ranges::copy(in, &x[(kRows - 1) * kCols]);
    const DeviceMatrix<std::uint8_t> q_view(q.span(), kRows, codes.size());
    const DeviceMatrix<float> s_view(s.span(), kRows, scales.size());
    course::run_few_blocks(
        [&] {
            day30::quantize_blocks<__half>(format, DeviceMatrix<__half>(x.span(), kRows, kCols), q_view,
                                           s_view, nullptr);
            day30::dequantize_blocks<__half>(format, q_view, s_view,
                                             DeviceMatrix<__half>(y.span(), kRows, kCols), nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    const auto expect_last = [&](const auto& got, const auto& expected, const char* what) {
        const std::size_t first = got.span().size() - expected.size();
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_EQ(static_cast<double>(static_cast<float>(got[first + i])),
                      static_cast<double>(static_cast<float>(expected[i])))
                << what << ": " << course::large_element(first + i, got.span().size());
    };
    expect_last(q, codes, "bytes of codes");
    expect_last(s, scales, "scales");
    std::vector<__half> values;
    for (const double value : back)
        values.push_back(static_cast<__half>(static_cast<float>(value)));
    expect_last(y, values, "values");
}

TEST_P(BlockTest, Patterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
                                      DataPattern::kSorted, DataPattern::kWithNan, DataPattern::kWithInf})
        both_types(4, 520, pattern);
}

TEST_P(BlockTest, Layouts) {
    for (const Layout layout : {Layout{1, 0}, Layout{8, 8}, Layout{16, 3}, Layout{4, 5}})
        both_types(5, 272, DataPattern::kNormal, layout);
}

// Blocks of zeros, of numbers too small for a scale, with a NaN; ties; levels themselves.
TEST_P(BlockTest, SpecialBlocks) {
    const std::size_t block = GetParam().block;
    std::vector<float> in = course::make_data<float>(8 * block, DataPattern::kNormal, kSeed);
    std::fill_n(in.begin(), block, 0.0f);
    std::fill_n(in.begin() + static_cast<std::ptrdiff_t>(2 * block), block, -1e-41f);
    in[4 * block - 1] = std::numeric_limits<float>::quiet_NaN();
    in[4 * block] = -std::numeric_limits<float>::infinity();
    const float largest = GetParam().code == Code::kInt8 ? 127 : GetParam().code == Code::kInt4 ? 7 : 1;
    for (std::size_t i = 0; i < block; ++i) {
        in[5 * block + i] =
            i == 0 ? largest : largest * (static_cast<float>(i % 15) - 7.0f) / 14;  // int4: ties
        in[6 * block + i] =
            i % 16 == 15 ? -1.0f : (day30::kNf4Levels[i % 16] + day30::kNf4Levels[i % 16 + 1]) / 2;
        in[7 * block + i] = day30::kNf4Levels[i % 16];
    }
    there_and_back<float>(1, 8 * block, in);
    there_and_back<float>(8, block, in);
}

// Scales that come from elsewhere may be any floats: a value is level times scale.
TEST_P(BlockTest, GivenScalesOfAnyValue) {
    const BlockFormat format = GetParam();
    const std::vector<float> scales = {-0.5f, 0.0f, std::numeric_limits<float>::infinity(),
                                       std::numeric_limits<float>::quiet_NaN(), -1e-40f};
    const std::size_t cols = scales.size() * format.block;
    const auto in = course::make_data<float>(cols, DataPattern::kNormal, kSeed);
    std::vector<std::uint8_t> codes(format.bytes(cols));
    std::vector<float> found(scales.size());
    day30::quantize_blocks_on_cpu<float>(format, 1, cols, in, codes, found);
    std::vector<double> expected(cols);
    day30::dequantize_blocks_on_cpu(format, 1, cols, codes, scales, expected);
    std::vector<double> magnitude(cols);
    for (std::size_t i = 0; i < cols; ++i)
        magnitude[i] = std::isfinite(expected[i]) ? std::abs(expected[i]) : 0;
    const DeviceBuffer<std::uint8_t> on_device{std::span<const std::uint8_t>(codes)};
    const DeviceBuffer<float> given{std::span<const float>(scales)};
    GuardedBuffer<float> out(cols);
    day30::dequantize_blocks<float>(format, on_device.matrix(1, codes.size()), given.matrix(1, scales.size()),
                                    out.matrix(1, cols), nullptr);
    const course::VerifyResult result = course::verify(out.to_host(), expected, {.factor = 1}, magnitude);
    EXPECT_TRUE(result.ok()) << result.message();
}

// A value is at most half a step from its code: a step of a scale, or the widest gap of the levels.
TEST_P(BlockTest, ErrorsAreAtMostHalfAStep) {
    const BlockFormat format = GetParam();
    const std::size_t cols = 3 * format.block + 5;
    const auto in = course::make_data<float>(4 * cols, DataPattern::kNormal, kSeed);
    std::vector<std::uint8_t> codes(4 * format.bytes(cols));
    std::vector<float> scales(4 * format.scales(cols));
    std::vector<double> back(in.size());
    day30::quantize_blocks_on_cpu<float>(format, 4, cols, in, codes, scales);
    day30::dequantize_blocks_on_cpu(format, 4, cols, codes, scales, back);
    const double half_step = format.code == Code::kNf4 ? (1.0 - 0.6961928) / 2 : 0.5;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double scale =
            static_cast<double>(scales[i / cols * format.scales(cols) + i % cols / format.block]);
        EXPECT_LE(std::abs(back[i] - static_cast<double>(in[i])), scale * half_step * (1 + 1e-4)) << i;
    }
}

TEST_P(BlockTest, Refuses) {
    const BlockFormat format = GetParam();
    auto x = course::zeros<float>(512);
    auto codes = course::zeros<std::uint8_t>(512);
    auto scales = course::zeros<float>(32);
    const auto quantize = [&](BlockFormat f, std::size_t bytes, std::size_t count) {
        return refusal([&] {
            day30::quantize_blocks<float>(f, x.matrix(1, 512), codes.matrix(1, bytes),
                                          scales.matrix(1, count), nullptr);
        });
    };
    const std::size_t bytes = format.bytes(512);
    const std::size_t count = format.scales(512);
    EXPECT_EQ(quantize(format, bytes, count), "");
    EXPECT_EQ(quantize(format, bytes - 1, count), "quantize_blocks: codes is 1 x " +
                                                      std::to_string(bytes - 1) + "; expected 1 x " +
                                                      std::to_string(bytes));
    EXPECT_EQ(quantize(format, bytes, count - 1), "quantize_blocks: scales is 1 x " +
                                                      std::to_string(count - 1) + "; expected 1 x " +
                                                      std::to_string(count));
    EXPECT_EQ(quantize({format.code, 48}, bytes, count),
              "quantize_blocks: block is 48; expected 16, 32, 64, 128 or 256");
    EXPECT_EQ(quantize({format.code, 0}, bytes, count),
              "quantize_blocks: block is 0; expected 16, 32, 64, 128 or 256");
    EXPECT_EQ(refusal([&] {
                  (void)BlockFormat{format.code, 0}.scales(5);
              }),
              "BlockFormat::scales: block is 0; expected 16, 32, 64, 128 or 256");
    std::vector<float> values(16), host_scales(1);
    std::vector<std::uint8_t> host_codes(16);
    EXPECT_EQ(
        refusal([&] {
            day30::quantize_blocks_on_cpu<float>({format.code, 0}, 1, 16, values, host_codes, host_scales);
        }),
        "quantize_blocks_on_cpu: block is 0; expected 16, 32, 64, 128 or 256");
    EXPECT_EQ(refusal([&] {
                  day30::quantize_blocks<float>(format, x.matrix(1, 512), codes.matrix(1, bytes),
                                                x.matrix(1, count), nullptr);
              }),
              "quantize_blocks: scales overlaps in; expected no memory in common");
}

TEST(Blockwise, KnownValues) {
    const std::vector<float> in = {7, -7, 3.4f, -0.6f, 2.5f};
    std::vector<std::uint8_t> codes(3);
    std::vector<float> scales(1);
    day30::quantize_blocks_on_cpu<float>({Code::kInt4, 64}, 1, 5, in, codes, scales);
    EXPECT_EQ(scales[0], 1);
    EXPECT_EQ(codes, (std::vector<std::uint8_t>{0x97, 0xf3, 0x02}));  // -7 7, -1 3, - 2
    day30::quantize_blocks_on_cpu<float>({Code::kNf4, 64}, 1, 5, in, codes, scales);
    EXPECT_EQ(scales[0], 7);
    EXPECT_EQ(codes, (std::vector<std::uint8_t>{0x0f, 0x6c, 0x0b}));
}

}  // namespace
