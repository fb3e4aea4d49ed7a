// Every version of 8-bit quantisation against the CPU, bit for bit, and the rules of
// quantization.hpp for cases without a good answer.
#include "quantization.hpp"

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
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::GuardedMatrix;
using course::refusal;
using day30::Granularity;
using day30::Method;
using day30::Problem;
using day30::Scheme;
using Layout = course::MatrixLayout;

constexpr std::uint64_t kSeed = 30;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Method kAllMethods[] = {
    {Scheme::kSymmetric, Granularity::kTensor}, {Scheme::kSymmetric, Granularity::kRow},
    {Scheme::kSymmetric, Granularity::kColumn}, {Scheme::kAsymmetric, Granularity::kTensor},
    {Scheme::kAsymmetric, Granularity::kRow},   {Scheme::kAsymmetric, Granularity::kColumn}};

struct Quantized {
    std::vector<std::int8_t> q;
    std::vector<float> scale;
    std::vector<std::int32_t> zero_point;

    Quantized() = default;
    explicit Quantized(const Problem& problem)
        : q(problem.rows * problem.cols),
          scale(day30::group_count(problem)),
          zero_point(problem.method.scheme == Scheme::kAsymmetric ? scale.size() : 0) {}
};

template <class T>
Quantized on_cpu(const Problem& problem, const std::vector<T>& in) {
    Quantized result(problem);
    day30::find_parameters_on_cpu(problem, std::span<const T>(in), result.scale, result.zero_point);
    day30::quantize_on_cpu<T>(problem, in, result.scale, result.zero_point, result.q);
    return result;
}

// "" when all agree.
std::string differences(const Problem& problem, const Quantized& got, const Quantized& expected) {
    const std::vector<double> exact(expected.scale.begin(), expected.scale.end());
    const course::VerifyResult scales = course::verify(got.scale, exact, {.factor = 0});
    if (!scales.ok()) return "scales: " + scales.message();
    const course::VerifyResult zeros = course::verify_exact(got.zero_point, expected.zero_point);
    if (!zeros.ok()) return "zero points: " + zeros.message();
    const course::VerifyResult values = course::verify_exact(got.q, expected.q, problem.cols);
    return values.ok() ? "" : "q: " + values.message();
}

template <class T>
class Runner {
  public:
    // The differences between the version's result and the CPU's, and any damage; "" if there are
    // none.
    static std::string run(const day30::Version<T>& version, const Problem& problem, const std::vector<T>& in,
                           Layout in_layout = {}, Layout out_layout = {}) {
        if (!version.cannot_run(problem).empty()) return "";
        GuardedMatrix<T> x(in, problem.rows, problem.cols, in_layout);
        GuardedMatrix<std::int8_t> q(problem.rows, problem.cols, out_layout);
        Quantized got(problem);
        GuardedBuffer<float> scale(got.scale.size(), in_layout.misaligned_by % 2);
        GuardedBuffer<std::int32_t> zero_point(got.zero_point.size());
        version.launcher(problem.method, x.view(), q.view(), scale.span(), zero_point.span(), nullptr);
        got.q = q.packed();
        got.scale = scale.to_host();
        got.zero_point = zero_point.to_host();
        const std::string damage = q.damage() + scale.damage() + zero_point.damage() +
                                   (x.unchanged() ? "" : " the input was changed");
        return damage + differences(problem, got, on_cpu(problem, in));
    }
};

template <class T>
void expect_right(const day30::Version<T>& version, std::size_t rows, std::size_t cols, DataPattern pattern,
                  Layout in = {}, Layout out = {}) {
    const auto data = course::make_data<T>(rows * cols, pattern, kSeed + cols);
    for (const Method method : kAllMethods) {
        const std::string wrong = Runner<T>::run(version, {rows, cols, method}, data, in, out);
        EXPECT_TRUE(wrong.empty()) << day30::name(method) << ", " << rows << " x " << cols << ", "
                                   << course::name(pattern) << ", " << wrong;
    }
}

// Each test for both types: T is `float` in one, __half in the other.
template <class T>
class VersionTest : public course::DeviceTestWithParam<const day30::Version<T>*> {
  protected:
    void sizes() const {
        for (const std::size_t cols :
             {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025})
            expect_right(*this->GetParam(), 3, cols, DataPattern::kNormal);
        for (const std::size_t rows : {0, 1, 2, 4, 5, 31, 32, 33, 63, 64, 65, 127, 129})
            expect_right(*this->GetParam(), rows, 40, DataPattern::kSignedUniform);
        for (const std::size_t cols :
             {2048, 2056, 4096, 4100, 8191, 8192, 8200, 16384, 16392, 32768, 32769, 40009})
            expect_right(*this->GetParam(), 2, cols, DataPattern::kNormal);
    }

    void patterns() const {
        for (const DataPattern pattern :
             {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny, DataPattern::kSorted,
              DataPattern::kReversed, DataPattern::kWithNan, DataPattern::kWithInf}) {
            expect_right(*this->GetParam(), 5, 7, pattern);
            expect_right(*this->GetParam(), 70, 300, pattern);
        }
    }

    void layouts() const {
        for (const std::size_t offset : {0, 1, 4, 8})
            for (const std::size_t padding : {0, 1, 8})
                for (const std::size_t cols : {24, 27})
                    expect_right(*this->GetParam(), 9, cols, DataPattern::kNormal, {offset, padding},
                                 {16 - offset, padding});
    }

    // Ordinary groups between groups of zeros, of numbers too small, and with NaN and Inf are
    // quantised as usual.
    void special_groups() const {
        const float tiny = std::is_same_v<T, float> ? 1e-40f : 6e-8f;
        const std::size_t n = 72;
        std::vector<T> data = course::make_data<T>(n * n, DataPattern::kNormal, kSeed);
        for (std::size_t i = 0; i < n; ++i) {
            const auto set = [&](std::size_t row, std::size_t col, float value) {
                data[row * n + col] = T(value);
            };
            set(3, i, 0.0f);
            set(i, 5, -0.0f);
            set(7, i, i % 2 == 0 ? tiny : -tiny);
            set(i, 11, tiny);
            set(13, i, i % 3 == 0 ? 0.0f : 1.5f);    // nothing below 0
            set(15, i, i % 3 == 0 ? -2.5f : -1.5f);  // nothing above 0
        }
        data[17 * n + 1] = T(kNan);
        data[19 * n + n - 1] = T(-kNan);
        data[21 * n + 30] = T(kInf);
        data[(n - 1) * n + 40] = T(-kInf);
        const auto expect_all = [&](const char* what, const std::vector<T>& in) {
            for (const Method method : kAllMethods) {
                const std::string wrong = Runner<T>::run(*this->GetParam(), {n, n, method}, in);
                EXPECT_TRUE(wrong.empty()) << day30::name(method) << ", " << what << ", " << wrong;
            }
        };
        expect_all("special groups", data);
        expect_all("zeros", std::vector<T>(n * n, T(0.0f)));
    }

    void random_shapes() const {
        course::Random random(kSeed);
        for (int i = 0; i < 12; ++i) {
            const std::size_t rows = 1 + random.below(90);
            const std::size_t cols = 1 + random.below(700);
            const Layout in{random.below(9), random.below(9)};
            const Layout out{random.below(17), random.below(9)};
            expect_right(*this->GetParam(), rows, cols, DataPattern::kNormal, in, out);
        }
    }

    // If there is memory for zero points, the symmetric scheme writes zeros to it.
    void zero_points_of_a_symmetric_scheme() const {
        for (const Granularity granularity : {Granularity::kTensor, Granularity::kRow, Granularity::kColumn})
            for (const std::size_t cols : {0, 1, 40, 33000}) {
                const Problem problem{5, cols, {Scheme::kSymmetric, granularity}};
                if (!this->GetParam()->cannot_run(problem).empty()) continue;
                const auto in = course::make_data<T>(5 * cols, DataPattern::kNormal, kSeed);
                GuardedMatrix<T> x(in, 5, cols);
                GuardedMatrix<std::int8_t> q(5, cols);
                const std::size_t groups = day30::group_count(problem);
                GuardedBuffer<float> scale(groups);
                GuardedBuffer<std::int32_t> zero_point(groups);
                zero_point.spoil();
                this->GetParam()->launcher(problem.method, x.view(), q.view(), scale.span(),
                                           zero_point.span(), nullptr);
                EXPECT_EQ(zero_point.to_host(), std::vector<std::int32_t>(groups))
                    << day30::name(problem.method) << ", 5 x " << cols;
                EXPECT_EQ(zero_point.damage() + scale.damage() + q.damage(), "");
                EXPECT_TRUE(course::verify_exact(q.packed(), on_cpu(problem, in).q, cols).ok());
            }
    }

    void refuses() const {
        auto in = course::zeros<T>(64);
        auto out = course::zeros<std::int8_t>(64);
        auto scale = course::zeros<float>(8);
        auto zero = course::zeros<std::int32_t>(8);
        const auto with = [&](Scheme scheme, DeviceMatrix<const T> x, DeviceMatrix<std::int8_t> q,
                              DeviceSpan<float> s, DeviceSpan<std::int32_t> z) {
            return refusal([&] {
                this->GetParam()->launcher({scheme, Granularity::kRow}, x, q, s, z, nullptr);
            });
        };
        const auto x = in.matrix(8, 8);
        const auto q = out.matrix(8, 8);
        EXPECT_EQ(with(Scheme::kSymmetric, x, q, scale.span(), {}), "");
        if (this->GetParam()->cannot_run({8, 8, {Scheme::kAsymmetric, Granularity::kRow}}).empty()) {
            EXPECT_EQ(with(Scheme::kAsymmetric, x, q, scale.span(), zero.span()), "");
            EXPECT_EQ(with(Scheme::kAsymmetric, x, q, scale.span(), {}),
                      "quantize: zero_point has 0 elements; expected 8");
        }
        EXPECT_EQ(with(Scheme::kSymmetric, x, out.matrix(4, 8), scale.span(), {}),
                  "quantize: out is 4 x 8; expected 8 x 8");
        EXPECT_EQ(with(Scheme::kSymmetric, x, q, scale.span().subspan(0, 7), {}),
                  "quantize: scale has 7 elements; expected 8");
        EXPECT_EQ(with(Scheme::kSymmetric, x, q, scale.span(), zero.span().subspan(0, 7)),
                  "quantize: zero_point has 7 elements; expected 8");
        const auto on_input = DeviceMatrix<std::int8_t>(
            DeviceSpan<std::int8_t>::from_device_pointer(reinterpret_cast<std::int8_t*>(in.data()), 64), 8,
            8);
        EXPECT_EQ(with(Scheme::kSymmetric, x, on_input, scale.span(), {}),
                  "quantize: out overlaps in; expected no memory in common");
        const auto scale_on_output =
            DeviceSpan<float>::from_device_pointer(reinterpret_cast<float*>(out.data()), 8);
        EXPECT_EQ(with(Scheme::kSymmetric, x, q, scale_on_output, {}),
                  "quantize: out overlaps scale; expected no memory in common");
        for (const Problem problem : {Problem{1, 8, {Scheme::kAsymmetric, Granularity::kRow}},
                                      Problem{1, 8, {Scheme::kSymmetric, Granularity::kColumn}},
                                      Problem{1, 32769, {Scheme::kSymmetric, Granularity::kRow}}}) {
            const std::string reason = this->GetParam()->cannot_run(problem);
            if (reason.empty()) continue;
            auto row = course::zeros<T>(problem.cols);
            auto result = course::zeros<std::int8_t>(problem.cols);
            auto scales = course::zeros<float>(problem.cols);
            EXPECT_EQ(refusal([&] {
                          this->GetParam()->launcher(problem.method, row.matrix(1, problem.cols),
                                                     result.matrix(1, problem.cols), scales.span(), {},
                                                     nullptr);
                      }),
                      "quantize: this version " + reason);
        }
    }
};

using FloatVersionTest = VersionTest<float>;
using HalfVersionTest = VersionTest<__half>;
INSTANTIATE_TEST_SUITE_P(DayThirty, FloatVersionTest, course::each_of(day30::versions<float>()),
                         course::VersionName());
INSTANTIATE_TEST_SUITE_P(DayThirty, HalfVersionTest, course::each_of(day30::versions<__half>()),
                         course::VersionName());

#define DAY30_BOTH(Name, method)     \
    TEST_P(FloatVersionTest, Name) { \
        method();                    \
    }                                \
    TEST_P(HalfVersionTest, Name) {  \
        method();                    \
    }
DAY30_BOTH(Sizes, sizes)
DAY30_BOTH(Patterns, patterns)
DAY30_BOTH(Layouts, layouts)
DAY30_BOTH(SpecialGroups, special_groups)
DAY30_BOTH(RandomShapes, random_shapes)
DAY30_BOTH(ZeroPointsOfASymmetricScheme, zero_points_of_a_symmetric_scheme)
DAY30_BOTH(Refuses, refuses)

// More elements than 32 bits count: zeros with a few rows of something else.
TEST_P(HalfVersionTest, MoreElementsThan32BitsCount) {
    constexpr std::size_t kCols = 4096;
    constexpr std::size_t kRows = (std::size_t{1} << 20) + 5;
    if (const std::string reason = course::why_not_so_large(kRows * kCols * 3); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<__half> in(kRows * kCols);
    DeviceBuffer<std::int8_t> out(kRows * kCols);
    DeviceBuffer<float> scale(kRows);
    CUDA_CHECK(cudaMemset(in.data(), 0, in.bytes()));
    CUDA_CHECK(cudaMemset(out.data(), 0x55, out.bytes()));
    const auto row = course::make_data<__half>(kCols, DataPattern::kNormal, kSeed);
    const Problem one{1, kCols, {Scheme::kSymmetric, Granularity::kRow}};
    const Quantized expected = on_cpu(one, row);
    const std::size_t places[] = {0, kRows / 2 + 7, kRows - 1};
    for (const std::size_t place : places)
        CUDA_CHECK(cudaMemcpy(in.data() + place * kCols, row.data(), kCols * 2, cudaMemcpyHostToDevice));
    GetParam()->launcher(one.method, in.matrix(kRows, kCols), out.matrix(kRows, kCols), scale.span(), {},
                         nullptr);
    Quantized got(one);
    for (const std::size_t place : places) {
        CUDA_CHECK(cudaMemcpy(got.q.data(), out.data() + place * kCols, kCols, cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(got.scale.data(), scale.data() + place, 4, cudaMemcpyDeviceToHost));
        EXPECT_EQ(differences(one, got, expected), "") << "row " << place;
    }
    CUDA_CHECK(cudaMemcpy(got.q.data(), out.data() + (kRows - 2) * kCols, kCols, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(course::verify_exact(got.q, std::vector<std::int8_t>(kCols, 0)).ok());
}

// The same on the CPU, around three places. A block may have as few as 256 elements: of a row so
// many are compared.
TEST_P(HalfVersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kCols = 4096;
    constexpr std::size_t kRows = (std::size_t{1} << 20) + 6;
    constexpr std::size_t kReach = 1024 * kCols;
    const course::LargeArray<__half> in(kRows * kCols, kReach);
    const course::LargeArray<std::int8_t> out(kRows * kCols, kReach);
    DeviceBuffer<float> scale(kRows);
    const auto row = course::make_data<__half>(kCols, DataPattern::kNormal, kSeed);
    const Problem one{1, kCols, {Scheme::kSymmetric, Granularity::kRow}};
    const Quantized expected = on_cpu(one, row);
    constexpr std::size_t kCompared = 256;
    const std::size_t places[] = {0, kRows / 2, kRows - 1};
    for (const std::size_t place : places)
        std::ranges::copy(row, &in[place * kCols]);
    course::run_few_blocks([&] {
        GetParam()->launcher(one.method, DeviceMatrix<const __half>(in.span(), kRows, kCols),
                             DeviceMatrix<std::int8_t>(out.span(), kRows, kCols), scale.span(), {}, nullptr);
    });
    if (HasFatalFailure()) return;
    for (const std::size_t place : places) {
        const std::size_t col = place == kRows - 1 ? kCols - kCompared : 0;
        const std::size_t element = place * kCols + col;
        float got_scale = 0;
        CUDA_CHECK(cudaMemcpy(&got_scale, scale.data() + place, sizeof(float), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got_scale, expected.scale[0]) << "row " << place;
        const course::VerifyResult result =
            course::verify_exact(std::span<const std::int8_t>(&out[element], kCompared),
                                 std::span<const std::int8_t>(expected.q).subspan(col, kCompared));
        EXPECT_TRUE(result.ok()) << course::large_element(element, kRows * kCols) << "\n" << result.message();
    }
}

// --- Given parameters ----------------------------------------------------------------------------

using QuantizationTest = course::DeviceTest;

template <class T>
void expect_given_parameters(const Problem& problem, Layout layout) {
    const std::string what = day30::name(problem.method) + ", " + std::to_string(problem.rows) + " x " +
                             std::to_string(problem.cols);
    std::vector<T> in = course::make_data<T>(problem.rows * problem.cols, DataPattern::kNormal, kSeed);
    in[0] = T(kNan), in[1] = T(kInf), in[2] = T(-kInf), in[3] = T(6e4f), in[4] = T(-6e4f);
    Quantized expected(problem);
    course::Random random(kSeed);
    for (float& s : expected.scale)
        s = random.uniform(0.001f, 0.1f);  // so small that most saturate
    expected.scale.back() = 0;
    if (expected.scale.size() > 2) expected.scale[1] = kNan;
    if (expected.scale.size() > 6) {
        expected.scale[3] = -0.02f;
        expected.scale[4] = kInf;
        expected.scale[5] = -kInf;
        expected.scale[6] = -1e-39f;  // no normal float
    }
    for (std::int32_t& z : expected.zero_point)
        z = random.integer(-128, 127);
    day30::quantize_on_cpu<T>(problem, in, expected.scale, expected.zero_point, expected.q);

    GuardedMatrix<T> x(in, problem.rows, problem.cols, layout);
    GuardedMatrix<std::int8_t> q(problem.rows, problem.cols, layout);
    const DeviceBuffer<float> scale{std::span<const float>(expected.scale)};
    const DeviceBuffer<std::int32_t> zero{std::span<const std::int32_t>(expected.zero_point)};
    day30::quantize_with<T>(problem.method, x.view(), scale.span(), zero.span(), q.view(), nullptr);
    const course::VerifyResult result = course::verify_exact(q.packed(), expected.q, problem.cols);
    EXPECT_TRUE(result.ok()) << what << ", quantised: " << result.message();
    EXPECT_EQ(q.damage(), "");

    std::vector<double> back(expected.q.size());
    day30::dequantize_on_cpu(problem, expected.q, expected.scale, expected.zero_point, back);
    GuardedMatrix<T> y(problem.rows, problem.cols, layout);
    day30::dequantize<T>(problem.method, q.view(), scale.span(), zero.span(), y.view(), nullptr);
    std::vector<double> magnitude(back.size());
    for (std::size_t i = 0; i < back.size(); ++i)
        magnitude[i] = std::isfinite(back[i]) ? std::abs(back[i]) : 0;
    const course::VerifyResult dequantized =
        course::verify(y.packed(), back, {.factor = 1}, magnitude, problem.cols);
    EXPECT_TRUE(dequantized.ok()) << what << ", back: " << dequantized.message();
    EXPECT_EQ(y.damage(), "");
}

TEST_F(QuantizationTest, GivenParametersAndBack) {
    for (const Method method : kAllMethods)
        for (const std::size_t cols : {5, 8, 33, 264})
            for (const Layout layout : {Layout{}, Layout{1, 3}, Layout{16, 8}}) {
                expect_given_parameters<float>({9, cols, method}, layout);
                expect_given_parameters<__half>({9, cols, method}, layout);
            }
}

// More than 2^32 values on the CPU: only the blocks of the last rows run.
TEST_F(QuantizationTest, GivenParametersBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kCols = 4096;
    constexpr std::size_t kRows = (std::size_t{1} << 20) + 6;
    const Method method{Scheme::kSymmetric, Granularity::kRow};
    const std::vector<double> end = {1};
    const course::LargeArray<std::int8_t> q(kRows * kCols, 16 * kCols, end);
    const course::LargeArray<float> out(kRows * kCols, 16 * kCols, end);
    const course::LargeArray<float> scale(kRows, 16, end);
    scale[kRows - 1] = 0.5f;
    for (std::size_t col = 0; col < kCols; ++col)
        q[(kRows - 1) * kCols + col] = static_cast<std::int8_t>(col % 255 - 127);
    course::run_few_blocks(
        [&] {
            day30::dequantize<float>(method, DeviceMatrix<std::int8_t>(q.span(), kRows, kCols), scale.span(),
                                     {}, DeviceMatrix<float>(out.span(), kRows, kCols), nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    for (std::size_t i = (kRows - 1) * kCols; i < kRows * kCols; ++i)
        ASSERT_EQ(out[i], 0.5f * static_cast<float>(q[i])) << course::large_element(i, kRows * kCols);
}

TEST_F(QuantizationTest, GivenParametersAndExtentsOfZero) {
    for (const Method method : kAllMethods) {
        for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{0, 5}, {5, 0}, {0, 0}}) {
            const std::size_t groups = day30::group_count({rows, cols, method});
            const auto scale = course::zeros<float>(groups);
            const auto zero = course::zeros<std::int32_t>(groups);
            GuardedBuffer<float> x(0);
            GuardedBuffer<std::int8_t> q(0);
            day30::quantize_with<float>(method, x.matrix(rows, cols), scale.span(), zero.span(),
                                        q.matrix(rows, cols), nullptr);
            day30::dequantize<float>(method, q.matrix(rows, cols), scale.span(), zero.span(),
                                     x.matrix(rows, cols), nullptr);
            EXPECT_EQ(x.damage() + q.damage(), "");
        }
    }
}

TEST_F(QuantizationTest, RoundsToTheNearestTiesToEven) {
    const std::vector<float> in = {0.5f,        1.5f,   2.5f,   -0.5f,   -1.5f, -2.5f,
                                   0.49999997f, 126.5f, 127.5f, -127.5f, 300.f, -300.f};
    const std::vector<std::int8_t> symmetric = {0, 2, 2, 0, -2, -2, 0, 126, 127, -127, 127, -127};
    const std::vector<std::int8_t> asymmetric = {3, 5, 5, 3, 1, 1, 3, 127, 127, -125, 127, -128};
    const DeviceBuffer<float> x{std::span<const float>(in)};
    const DeviceBuffer<float> scale{std::span<const float>(std::vector<float>{1.0f})};
    const DeviceBuffer<std::int32_t> zero{std::span<const std::int32_t>(std::vector<std::int32_t>{3})};
    GuardedBuffer<std::int8_t> q(in.size());
    for (const Scheme scheme : {Scheme::kSymmetric, Scheme::kAsymmetric}) {
        const bool is_symmetric = scheme == Scheme::kSymmetric;
        day30::quantize_with<float>({scheme, Granularity::kTensor}, x.matrix(1, in.size()), scale.span(),
                                    zero.span(), q.matrix(1, in.size()), nullptr);
        EXPECT_EQ(q.to_host(), is_symmetric ? symmetric : asymmetric);
        std::vector<std::int8_t> cpu(in.size());
        day30::quantize_on_cpu<float>({1, in.size(), {scheme, Granularity::kTensor}}, in,
                                      std::vector<float>{1.0f}, std::vector<std::int32_t>{3}, cpu);
        EXPECT_EQ(cpu, is_symmetric ? symmetric : asymmetric);
    }
}

TEST_F(QuantizationTest, ANegativeScaleChangesTheSigns) {
    const std::vector<float> in = {0.5f, 1.5f, -2.5f, 100.f, 300.f, -300.f, 0.f, kNan, kInf, -kInf};
    const std::vector<std::int8_t> symmetric = {0, -2, 2, -100, -127, 127, 0, 0, -127, 127};
    const std::vector<std::int8_t> asymmetric = {3, 1, 5, -97, -128, 127, 3, 3, -128, 127};
    const DeviceBuffer<float> x{std::span<const float>(in)};
    const std::vector<float> scales = {-1.0f};
    const std::vector<std::int32_t> zeros = {3};
    const DeviceBuffer<float> scale{std::span<const float>(scales)};
    const DeviceBuffer<std::int32_t> zero{std::span<const std::int32_t>(zeros)};
    GuardedBuffer<std::int8_t> q(in.size());
    for (const Scheme scheme : {Scheme::kSymmetric, Scheme::kAsymmetric}) {
        const Method method{scheme, Granularity::kTensor};
        const std::vector<std::int8_t>& expected = scheme == Scheme::kSymmetric ? symmetric : asymmetric;
        day30::quantize_with<float>(method, x.matrix(1, in.size()), scale.span(), zero.span(),
                                    q.matrix(1, in.size()), nullptr);
        EXPECT_EQ(q.to_host(), expected);
        std::vector<std::int8_t> cpu(in.size());
        day30::quantize_on_cpu<float>({1, in.size(), method}, in, scales, zeros, cpu);
        EXPECT_EQ(cpu, expected);
    }
}

// What the definition promises: no value moves by more than half a step, 0 is exact, and the
// largest magnitude uses the largest code.
TEST(Definition, ErrorsAreAtMostHalfAStep) {
    for (const Method method : kAllMethods) {
        for (const DataPattern pattern : course::kFinitePatterns) {
            const Problem problem{20, 50, method};
            auto in = course::make_data<float>(1000, pattern, kSeed);
            in[123] = 0;
            const Quantized got = on_cpu(problem, in);
            std::vector<double> back(in.size());
            day30::dequantize_on_cpu(problem, got.q, got.scale, got.zero_point, back);
            EXPECT_EQ(back[123], 0);
            for (std::size_t i = 0; i < in.size(); ++i) {
                const std::size_t group = method.granularity == Granularity::kTensor ? 0
                                          : method.granularity == Granularity::kRow  ? i / 50
                                                                                     : i % 50;
                const double step = static_cast<double>(got.scale[group]);
                // Scale, its inverse and the zero point's quotient are rounded: 255 steps of 2^-23.
                EXPECT_LE(std::abs(back[i] - static_cast<double>(in[i])), step * (0.5 + 255 * 0x1p-22))
                    << day30::name(method) << ", " << course::name(pattern) << ", element " << i;
            }
        }
    }
}

TEST(Definition, KnownValues) {
    const std::vector<float> in = {-1, 0, 0.5f, 2.54f, 0, 0, 0, 0, -5, -4, -3, -2.45f, kNan, 1, 2, 3};
    const Quantized symmetric = on_cpu<float>({4, 4, {Scheme::kSymmetric, Granularity::kRow}}, in);
    EXPECT_FLOAT_EQ(symmetric.scale[0], 0.02f);
    EXPECT_EQ(symmetric.scale[1], 0);
    EXPECT_TRUE(std::isnan(symmetric.scale[3]));
    EXPECT_EQ(symmetric.q,
              (std::vector<std::int8_t>{-50, 0, 25, 127, 0, 0, 0, 0, -127, -102, -76, -62, 0, 0, 0, 0}));
    const Quantized asymmetric = on_cpu<float>({4, 4, {Scheme::kAsymmetric, Granularity::kRow}}, in);
    EXPECT_FLOAT_EQ(asymmetric.scale[2], 5.0f / 255);
    EXPECT_EQ(asymmetric.zero_point[0], -56);  // 1 / (3.54 / 255) = 72.03
    EXPECT_EQ(asymmetric.zero_point[2], 127);
    EXPECT_EQ(asymmetric.q[8], -128);
    EXPECT_EQ(asymmetric.q[3], 127);
}

// --- From host memory ----------------------------------------------------------------------------

TEST_F(QuantizationTest, FromHostMemory) {
    const Problem problem{17, 100, {Scheme::kSymmetric, Granularity::kRow}};
    const auto in = course::make_data<__half>(1700, DataPattern::kNormal, kSeed);
    Quantized got(problem);
    day30::quantize_rows_of_host<__half>(17, 100, in, got.q, got.scale);
    EXPECT_EQ(differences(problem, got, on_cpu(problem, in)), "");
    EXPECT_EQ(refusal([&] { day30::quantize_rows_of_host<__half>(17, 99, in, got.q, got.scale); }),
              "quantize_rows_of_host: in has 1700 elements; expected 1683");
}

}  // namespace
