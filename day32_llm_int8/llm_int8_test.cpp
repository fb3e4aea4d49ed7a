// The layer of LLM.int8() and its steps against the CPU.
#include "llm_int8.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/relative_error.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::GuardedMatrix;
using course::refusal;
using day32::LayerShape;
using Layout = course::MatrixLayout;

constexpr std::uint64_t kSeed = 33;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Numbers around 1 that never reach 6, and large ones in the columns of `outliers`, each in one
// token.
std::vector<__half> tokens_with_outliers(const LayerShape& shape, const std::vector<std::size_t>& outliers) {
    auto x = course::make_data<__half>(shape.tokens * shape.inputs, DataPattern::kSignedUniform, kSeed);
    for (const std::size_t column : outliers)
        x[(column * 7 + 3) % shape.tokens * shape.inputs + column] = __half(column % 2 == 0 ? 60.0f : -6.0f);
    return x;
}

// W8 and its scales: a row of W is quantised like a row of X without outlier columns.
void quantize_weights(course::DeviceMatrix<const __half> w, course::DeviceMatrix<std::int8_t> w8,
                      course::DeviceSpan<float> scale) {
    const std::vector<std::uint16_t> all(w.cols(), 0xffff);
    const DeviceBuffer<std::uint16_t> keep{std::span<const std::uint16_t>(all)};
    day32::quantize_kept_columns(w, keep.span(), w8, scale, nullptr);
}

struct Layouts {
    Layout x, w, y;
    std::size_t w8_padding = 0;
};

class LayerTest : public course::DeviceTestWithParam<const day32::Version*> {
  protected:
    void SetUp() override {
        NeedsDevice::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // "" if the version's result is within the bounds of the CPU's.
    std::string run(const LayerShape& shape, const std::vector<__half>& x, const std::vector<__half>& w,
                    float threshold = day32::kThreshold, Layouts layouts = {}) const {
        const auto [tokens, outputs, inputs] = shape;
        GuardedMatrix<__half> x_device(x, tokens, inputs, layouts.x);
        GuardedMatrix<__half> w_device(w, outputs, inputs, layouts.w);
        GuardedMatrix<std::int8_t> w8(outputs, inputs, (16 - inputs % 16) % 16 + layouts.w8_padding);
        DeviceBuffer<float> w_scale(outputs);
        quantize_weights(w_device.view(), w8.view(), w_scale.span());
        GuardedMatrix<__half> y(tokens, outputs, layouts.y);
        GuardedBuffer<std::byte> workspace(GetParam()->launcher.workspace(shape));
        GetParam()->launcher.launch({x_device.view(), w_device.view(), w8.view(), w_scale.span(), y.view(),
                                     workspace.span(), threshold},
                                    nullptr);
        std::vector<double> expected(tokens * outputs);
        std::vector<double> allowed(expected.size());
        const day32::HostLayer layer{shape, threshold, x, w};
        day32::llm_int8_on_cpu(layer, day32::outlier_columns_on_cpu(layer), expected, allowed);
        for (double& bound : allowed)
            bound /= course::FloatTraits<__half>::kEpsilon;
        const course::VerifyResult result =
            course::verify(y.packed(), expected, {.factor = 1}, allowed, outputs);
        return y.damage() + workspace.damage() +
               (x_device.unchanged() && w_device.unchanged() ? "" : " changed input") +
               (result.ok() ? "" : result.message());
    }

    void expect_right(const LayerShape& shape, const std::vector<std::size_t>& outliers,
                      float threshold = day32::kThreshold, Layouts layouts = {}) const {
        const auto x = tokens_with_outliers(shape, outliers);
        const auto w =
            course::make_data<__half>(shape.outputs * shape.inputs, DataPattern::kNormal, kSeed + 1);
        EXPECT_EQ(run(shape, x, w, threshold, layouts), "")
            << shape.tokens << " tokens, " << shape.outputs << " outputs, " << shape.inputs << " inputs, "
            << outliers.size() << " outlier columns, threshold " << threshold;
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyTwo, LayerTest, course::each_of(day32::versions()), course::VersionName());

TEST_P(LayerTest, Inputs) {
    for (const std::size_t inputs : {1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 256, 300, 1031})
        expect_right({5, 12, inputs}, {0, inputs / 2});
    expect_right({5, 12, 0}, {});
}

TEST_P(LayerTest, TokensAndOutputs) {
    for (const std::size_t tokens : {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129})
        expect_right({tokens, 10, 40},
                     tokens == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{3, 39});
    for (const std::size_t outputs : {0, 1, 7, 8, 9, 64, 65, 255, 256, 257})
        expect_right({10, outputs, 40}, {3});
}

// No outlier column, a few, more than one tile of them, all.
TEST_P(LayerTest, NumbersOfOutlierColumns) {
    const LayerShape shape{20, 30, 150};
    std::vector<std::size_t> outliers;
    for (const std::size_t count : {0, 1, 2, 31, 63, 64, 65, 128, 149, 150}) {
        while (outliers.size() < count)
            outliers.push_back(149 - outliers.size());
        expect_right(shape, outliers);
    }
}

TEST_P(LayerTest, Thresholds) {
    const LayerShape shape{20, 30, 70};
    expect_right(shape, {1, 2, 3}, 0);     // all columns
    expect_right(shape, {1, 2, 3}, kInf);  // none
    expect_right(shape, {1, 2, 3}, 60);    // the even ones: a value at the threshold counts
    expect_right(shape, {1, 2, 3}, std::nextafter(60.0f, 100.0f));  // none
    expect_right(shape, {1, 2, 3}, std::nextafter(6.0f, 0.0f));
}

TEST_P(LayerTest, LongRows) {
    expect_right({2, 3, 4100}, {4099});
    // The versions share the kernels that depend on the length of a row. On a CPU one version is
    // enough for them: an int8 product of tensor cores computes a whole tile for these few results.
    if (course::is_cpu_stand_in() && GetParam()->launcher.needs_aligned_rows) return;
    expect_right({2, 3, 16388}, {0, 8191, 16387});
    expect_right({1, 2, 33001}, {7, 33000});
    // Rows that are read in passes, of which the second and third do not begin where the one before
    // ends.
    for (const Layout layout : {Layout{0, 7}, Layout{1, 3}})
        expect_right({3, 2, 33001}, {7, 33000}, day32::kThreshold, {layout, layout, layout, 16});
}

TEST_P(LayerTest, Layouts) {
    for (const std::size_t inputs : {64, 75})
        for (const Layout layout : {Layout{1, 0}, Layout{8, 8}, Layout{2, 1}, Layout{0, 2}})
            expect_right({18, 35, inputs}, {5, 6, 60}, day32::kThreshold, {layout, layout, layout, 16});
}

TEST_P(LayerTest, RandomShapes) {
    course::Random random(kSeed);
    for (int i = 0; i < 6; ++i) {
        const LayerShape shape{1 + random.below(150), 1 + random.below(280), 1 + random.below(400)};
        std::vector<std::size_t> outliers;
        for (std::size_t k = 0; k < shape.inputs; k += 1 + random.below(60))
            outliers.push_back(k);
        expect_right(shape, outliers);
    }
}

// NaN and Inf in a token stay in its row; zeros, a token of nothing else, results too large for a
// half.
TEST_P(LayerTest, SpecialTokensAndWeights) {
    const LayerShape shape{12, 20, 50};
    auto x = tokens_with_outliers(shape, {4});
    auto w = course::make_data<__half>(20 * 50, DataPattern::kNormal, kSeed + 1);
    std::fill_n(x.begin() + 2 * 50, 50, __half(0.0f));
    std::fill_n(w.begin() + 3 * 50, 50, __half(0.0f));
    EXPECT_EQ(run(shape, x, w), "");
    x[5 * 50 + 7] = __half(kNan);
    x[6 * 50 + 8] = __half(kInf);
    x[7 * 50 + 9] = __half(-kInf);
    x[8 * 50 + 10] = __half(60000.0f);
    w[9 * 50 + 10] = __half(500.0f);
    EXPECT_EQ(run(shape, x, w), "");
    EXPECT_EQ(run(shape, x, w, kInf), "");
    w[11 * 50 + 3] = __half(kNan);
    w[13 * 50 + 3] = __half(kInf);
    EXPECT_EQ(run(shape, x, w), "");
    EXPECT_EQ(
        run(shape, std::vector<__half>(x.size(), __half(0.0f)), std::vector<__half>(w.size(), __half(0.0f))),
        "");
}

// A scale is a factor of its column of Y, and reaches no other.
TEST_P(LayerTest, ScalesOfWMayBeAnyFloats) {
    constexpr std::size_t kTokens = 5, kOutputs = 70, kInputs = 48;
    const auto x = course::make_data<__half>(kTokens * kInputs, DataPattern::kSignedUniform, kSeed);
    const auto w = course::make_data<__half>(kOutputs * kInputs, DataPattern::kNormal, kSeed + 1);
    const DeviceBuffer<__half> x_device{std::span<const __half>(x)}, w_device{std::span<const __half>(w)};
    DeviceBuffer<std::int8_t> w8(w.size());
    DeviceBuffer<float> w_scale(kOutputs);
    quantize_weights(w_device.matrix(kOutputs, kInputs), w8.matrix(kOutputs, kInputs), w_scale.span());
    std::vector<float> scales(kOutputs);
    w_scale.copy_to(std::span<float>(scales));
    const auto run_with = [&](const std::vector<float>& given) {
        const DeviceBuffer<float> scale{std::span<const float>(given)};
        GuardedBuffer<__half> y(kTokens * kOutputs);
        GuardedBuffer<std::byte> workspace(GetParam()->launcher.workspace({kTokens, kOutputs, kInputs}));
        GetParam()->launcher.launch(
            {x_device.matrix(kTokens, kInputs), w_device.matrix(kOutputs, kInputs),
             w8.matrix(kOutputs, kInputs), scale.span(), y.matrix(kTokens, kOutputs), workspace.span(), kInf},
            nullptr);
        return y.to_host();
    };
    const std::vector<__half> usual = run_with(scales);
    scales[1] *= -1;
    scales[2] = 0;
    scales[66] = kNan;
    scales[67] = -kInf;
    const std::vector<__half> got = run_with(scales);
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t column = i % kOutputs;
        const auto before = static_cast<float>(usual[i]);
        const auto y = static_cast<float>(got[i]);
        if (column == 66) {
            EXPECT_TRUE(std::isnan(y)) << i;
        } else if (column == 67) {
            EXPECT_EQ(y, before > 0 ? -kInf : kInf) << i;
        } else {
            EXPECT_EQ(y, column == 1 ? -before : column == 2 ? 0.0f : before) << i;
        }
    }
}

TEST_P(LayerTest, Refuses) {
    auto x = course::zeros<__half>(64);
    auto w = course::zeros<__half>(96);
    DeviceBuffer<__half> y(6);
    auto w8 = course::zeros<std::int8_t>(96);
    auto w_scale = course::zeros<float>(3);
    DeviceBuffer<std::byte> workspace(GetParam()->launcher.workspace({2, 3, 32}));
    const day32::Layer right{x.matrix(2, 32), w.matrix(3, 32), w8.matrix(3, 32),
                             w_scale.span(),  y.matrix(2, 3),  workspace.span()};
    const auto with = [&](auto change) {
        day32::Layer layer = right;
        change(layer);
        return refusal([&] { GetParam()->launcher.launch(layer, nullptr); });
    };
    EXPECT_EQ(with([](day32::Layer&) {}), "");
    EXPECT_EQ(with([&](day32::Layer& l) { l.w = w.matrix(3, 31); }),
              "llm_int8: w is 3 x 31; expected 3 x 32");
    EXPECT_EQ(with([&](day32::Layer& l) { l.y = y.matrix(3, 2); }), "llm_int8: y is 3 x 2; expected 2 x 3");
    EXPECT_EQ(with([&](day32::Layer& l) { l.w_scale = w_scale.span().subspan(0, 2); }),
              "llm_int8: w_scale has 2 elements; expected 3");
    EXPECT_EQ(with([](day32::Layer& l) { l.threshold = -1; }),
              "llm_int8: threshold is -1; expected 0 or more");
    EXPECT_EQ(with([](day32::Layer& l) { l.threshold = kNan; }).substr(0, 25), "llm_int8: threshold is na");
    EXPECT_EQ(with([](day32::Layer& l) { l.workspace = l.workspace.subspan(0, 16); }),
              "llm_int8: workspace has 16 bytes; expected at least " + std::to_string(workspace.size()));
    EXPECT_EQ(
        with([](day32::Layer& l) {
            l.y = {course::DeviceSpan<__half>::from_device_pointer(const_cast<__half*>(l.x.data()), 6), 2, 3};
        }),
        "llm_int8: y overlaps x; expected no memory in common");
    // x and y side by side have no element in common; a column further left they do.
    auto both = course::zeros<__half>(2 * 40);
    const auto side_by_side = [&](std::size_t begin) {
        return with([&](day32::Layer& l) {
            l.x = {both.span(), 2, 32, 40};
            l.y = {both.span().subspan(begin, 48), 2, 3, 40};
        });
    };
    EXPECT_EQ(side_by_side(32), "");
    EXPECT_EQ(side_by_side(31), "llm_int8: y overlaps x; expected no memory in common");
    DeviceBuffer<std::byte> larger(workspace.size() + 16);
    EXPECT_EQ(with([&](day32::Layer& l) { l.workspace = larger.span().subspan(4, workspace.size()); }),
              "llm_int8: workspace has an address % 16 of 4; expected 0");
    if (!GetParam()->launcher.needs_aligned_rows) return;
    auto odd = course::zeros<std::int8_t>(99);
    EXPECT_EQ(with([&](day32::Layer& l) {
                  l.w8 = {odd.span(), 3, 32, 33};
              }),
              "llm_int8: w8 has an address % 16 of 0 and rows that are 33 bytes apart; expected 0 and a "
              "multiple of "
              "16");
}

// --- The steps -----------------------------------------------------------------------------------

using LlmInt8Test = course::DeviceTest;

TEST_F(LlmInt8Test, FindsOutlierColumnsInOrder) {
    for (const std::size_t cols : {1, 8, 31, 250, 1023, 1024, 1025, 2500})
        for (const std::size_t rows : {1, 9, 63, 64, 65, 130})
            for (const Layout layout : {Layout{}, Layout{1, 3}}) {
                SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
                course::Random random(kSeed + cols + rows);
                std::vector<__half> x(rows * cols, __half(-5.99f));
                for (std::size_t i = 0; i < cols; i += 1 + random.below(40))
                    x[random.below(static_cast<std::uint32_t>(rows)) * cols + i] =
                        __half(i % 3 == 0   ? 6.0f
                               : i % 3 == 1 ? -kInf
                                            : kNan);
                const std::vector<std::uint32_t> expected =
                    day32::outlier_columns_on_cpu({{rows, 0, cols}, 6.0f, x, {}});
                ASSERT_FALSE(expected.empty());
                GuardedMatrix<__half> device(x, rows, cols, layout);
                GuardedBuffer<std::uint16_t> keep(cols);
                GuardedBuffer<std::uint32_t> columns(cols);
                GuardedBuffer<std::uint32_t> count(1);
                day32::find_outlier_columns(device.view(), 6.0f, keep.span(), columns.span(), count.span(),
                                            nullptr);
                std::vector<std::uint16_t> kept(cols, 0xffff);
                for (const std::uint32_t column : expected)
                    kept[column] = 0;
                const course::VerifyResult marks = course::verify_exact(keep.to_host(), kept);
                ASSERT_TRUE(marks.ok()) << "keep: " << marks.message();
                ASSERT_EQ(count.to_host()[0], expected.size()) << "number of outlier columns";
                std::vector<std::uint32_t> got = columns.to_host();
                got.resize(expected.size());
                const course::VerifyResult list = course::verify_exact(got, expected);
                EXPECT_TRUE(list.ok()) << "outlier columns: " << list.message();
                EXPECT_EQ(keep.damage() + columns.damage() + count.damage(), "");
            }
}

// Without tokens no column is an outlier column, and all are kept.
TEST_F(LlmInt8Test, FindsNoOutlierColumnsWithoutRows) {
    for (const std::size_t cols : {0, 1, 40, 1025}) {
        GuardedMatrix<__half> x(0, cols);
        GuardedBuffer<std::uint16_t> keep(cols);
        GuardedBuffer<std::uint32_t> columns(cols);
        GuardedBuffer<std::uint32_t> count(1);
        keep.copy_from(std::vector<std::uint16_t>(cols, 0));
        day32::find_outlier_columns(x.view(), 6.0f, keep.span(), columns.span(), count.span(), nullptr);
        EXPECT_EQ(count.to_host()[0], 0u);
        EXPECT_EQ(keep.to_host(), std::vector<std::uint16_t>(cols, 0xffff));
        EXPECT_EQ(keep.damage() + columns.damage() + count.damage(), "");
    }
}

TEST_F(LlmInt8Test, StepsRefuse) {
    auto x = course::zeros<__half>(64);
    auto keep = course::zeros<std::uint16_t>(32);
    DeviceBuffer<std::uint32_t> columns(33);
    DeviceBuffer<std::int8_t> out(64);
    DeviceBuffer<float> scale(2);
    const auto find = [&](float threshold, std::size_t kept, std::size_t at) {
        return refusal([&] {
            day32::find_outlier_columns(x.matrix(2, 32), threshold, keep.span().subspan(0, kept),
                                        columns.span().subspan(0, 32), columns.span().subspan(at, 1),
                                        nullptr);
        });
    };
    EXPECT_EQ(find(6, 32, 32), "");
    EXPECT_EQ(find(6, 31, 32), "find_outlier_columns: keep has 31 elements; expected 32");
    EXPECT_EQ(find(6, 32, 31), "find_outlier_columns: columns overlaps count; expected no memory in common");
    EXPECT_EQ(find(-1, 32, 32), "find_outlier_columns: threshold is -1; expected 0 or more");
    const auto quantize = [&](std::size_t rows, course::DeviceSpan<float> scales) {
        return refusal([&] {
            day32::quantize_kept_columns(x.matrix(2, 32), keep.span(), out.matrix(rows, 64 / rows), scales,
                                         nullptr);
        });
    };
    EXPECT_EQ(quantize(2, scale.span()), "");
    EXPECT_EQ(quantize(4, scale.span()), "quantize_kept_columns: out is 4 x 16; expected 2 x 32");
    EXPECT_EQ(quantize(2, scale.span().subspan(0, 1)),
              "quantize_kept_columns: scale has 1 elements; expected 2");
    const auto on_x = course::DeviceSpan<float>::from_device_pointer(reinterpret_cast<float*>(x.data()), 2);
    EXPECT_EQ(quantize(2, on_x), "quantize_kept_columns: scale overlaps x; expected no memory in common");
}

// Why outliers matter: quantised, the largest of them would decide the error of all other columns.
TEST_F(LlmInt8Test, OutliersSpoilTheScaleAndTheThresholdSavesIt) {
    const LayerShape shape{32, 32, 256};
    const auto w = course::make_data<__half>(32 * 256, DataPattern::kNormal, kSeed);
    const auto error = [&](const std::vector<__half>& x, float threshold) {
        const day32::HostLayer layer{shape, threshold, x, w};
        std::vector<double> exact(32 * 32), y(32 * 32), allowed(32 * 32);
        day32::linear_on_cpu(layer, exact);
        day32::llm_int8_on_cpu(layer, day32::outlier_columns_on_cpu(layer), y, allowed);
        return course::relative_error(exact, y).root_mean_square;
    };
    const auto plain = tokens_with_outliers(shape, {});
    auto outliers = plain;
    for (std::size_t token = 0; token < 32; ++token)
        outliers[token * 256 + 17] = __half(60.0f);
    EXPECT_LT(error(plain, kInf), 0.015);
    EXPECT_EQ(error(plain, kInf), error(plain, 6.0f));
    EXPECT_LT(error(outliers, 6.0f), 0.015);
    EXPECT_GT(error(outliers, kInf), 4 * error(outliers, 6.0f));
}

// Codes and scales of rows, bit for bit: lengths around a block's registers and beyond them, rows
// of zeros, with NaN and with Inf.
TEST_F(LlmInt8Test, QuantizesRowsLikeTheCpu) {
    for (const std::size_t cols : {1, 7, 8, 9, 1031, 4096, 4104, 8200, 16400, 32768, 32769, 40009})
        for (const Layout layout : {Layout{}, Layout{1, 3}}) {
            auto w = course::make_data<__half>(6 * cols, DataPattern::kNormal, kSeed);
            std::fill_n(w.begin(), cols, __half(0.0f));
            w[1 * cols + cols / 2] = __half(kNan);
            w[2 * cols + cols - 1] = __half(-kInf);
            w[3 * cols] = __half(60000.0f);
            std::vector<std::int8_t> codes(w.size());
            std::vector<float> scales(6);
            day32::quantize_rows_on_cpu(6, cols, w, codes, scales);
            GuardedMatrix<__half> device(w, 6, cols, layout);
            GuardedMatrix<std::int8_t> w8(6, cols, layout);
            GuardedBuffer<float> w_scale(6);
            quantize_weights(device.view(), w8.view(), w_scale.span());
            const course::VerifyResult same = course::verify_exact(w8.packed(), codes, cols);
            EXPECT_TRUE(same.ok()) << cols << " columns, codes: " << same.message();
            const std::vector<double> exact(scales.begin(), scales.end());
            const course::VerifyResult same_scales = course::verify(w_scale.to_host(), exact, {.factor = 0});
            EXPECT_TRUE(same_scales.ok()) << cols << " columns, scales: " << same_scales.message();
            EXPECT_EQ(w8.damage() + w_scale.damage(), "");
        }
}

// plain takes weights that begin anywhere.
TEST_P(LayerTest, UnalignedWeights) {
    if (GetParam()->launcher.needs_aligned_rows) GTEST_SKIP() << "requires aligned rows of w8";
    for (const std::size_t padding : {1, 3, 8})
        expect_right({5, 12, 80}, {3, 7}, day32::kThreshold, {{}, {}, {}, padding});
}

}  // namespace
