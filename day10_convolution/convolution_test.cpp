// Every version against sums in double, and against OpenCV: every border, both types, one channel
// and three.
#include "convolution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "convolution_verify.hpp"
#include "normal_density.hpp"
#include "opencv_border.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using day10::Border;
using day10::BorderKind;
using day10::DevicePicture;
using day10::Filter;

constexpr std::uint64_t kSeed = 10;

struct Shape {
    std::size_t rows;
    std::size_t cols;
    std::size_t channels = 1;
    std::size_t in_gap = 0;  // values between the end of a row and the beginning of the next
    std::size_t out_gap = 0;
    std::size_t offset = 0;  // of the first value from an aligned address, in and out

    std::size_t width() const { return cols * channels; }
    std::size_t size() const { return rows * width(); }
};

std::string text(const Shape& s, const Filter& filter, const Border& border) {
    return std::to_string(s.rows) + " rows x " + std::to_string(s.cols) + " pixels x " +
           std::to_string(s.channels) + " channels, filter " + std::to_string(filter.rows()) + " x " +
           std::to_string(filter.cols()) + ", border " + std::string(name(border.kind));
}

// Weights of no symmetry at all, so that a swapped index shows.
std::vector<float> some_weights(std::size_t count, std::uint64_t seed) {
    return course::make_data<float>(count, DataPattern::kSignedUniform, seed);
}

Filter some_general(std::size_t rows, std::size_t cols) {
    return Filter::general(rows, cols, some_weights(rows * cols, 77));
}

Filter some_separable(std::size_t rows, std::size_t cols) {
    return Filter::separable(some_weights(rows, 78), some_weights(cols, 79));
}

// What a version makes of a picture, rows close together again; `damage` if it wrote outside or
// into the gaps.
template <class T>
struct Result {
    std::vector<T> values;
    std::string damage;
};

template <class T>
Result<T> convolve(const day10::Convolution<T>& version, const std::vector<T>& values, const Shape& s,
                   const Filter& filter, Border border) {
    const std::size_t in_pitch = s.width() + s.in_gap;
    const std::size_t out_pitch = s.width() + s.out_gap;
    // What lies in the gaps must not be looked at: NaN, or the largest value.
    const T poison = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN()
                                                           : std::numeric_limits<T>::max();
    std::vector<T> spread(s.offset + s.rows * in_pitch, poison);
    for (std::size_t row = 0; row < s.rows; ++row) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * s.width()), s.width(),
                    spread.begin() + static_cast<std::ptrdiff_t>(s.offset + row * in_pitch));
    }
    // The input ends where its last row does: a read behind it meets the end of the allocation.
    if (s.rows != 0) spread.resize(spread.size() - s.in_gap);
    const DeviceBuffer<T> in{std::span<const T>(spread)};
    GuardedBuffer<T> out(s.rows * out_pitch, s.offset);
    DeviceBuffer<float> workspace(s.size());
    const std::size_t in_values = spread.size() - s.offset;
    version.launcher({in.span().subspan(s.offset, in_values), s.rows, s.cols, s.channels, in_pitch},
                     {out.span(), s.rows, s.cols, s.channels, out_pitch}, filter, border, workspace.span(),
                     nullptr);
    const std::vector<T> got = out.to_host();
    Result<T> result{{}, out.damage()};
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (i % out_pitch < s.width()) {
            result.values.push_back(got[i]);
        } else if (!course::is_unwritten(got[i])) {
            result.damage = "value " + std::to_string(i) + ", between two rows, was overwritten";
        }
    }
    const std::vector<T> after = in.to_host();
    if (!after.empty() && std::memcmp(after.data(), spread.data(), in.bytes()) != 0)
        result.damage += " the input was changed";
    return result;
}

template <class T>
course::VerifyResult check(const day10::Convolution<T>& version, const Shape& s, const Filter& filter,
                           Border border, DataPattern pattern = DataPattern::kSignedUniform) {
    const std::vector<T> values = course::make_data<T>(s.size(), pattern, kSeed);
    const Result<T> got = convolve(version, values, s, filter, border);
    const day10::Expected expected =
        day10::convolve_on_cpu<T>(values, s.rows, s.cols, s.channels, filter, border);
    course::VerifyResult result = day10::verify_convolution(got.values, expected, filter);
    result.cols = s.width();
    result.damage = got.damage;
    return result;
}

template <class T>
bool can_run(const day10::Convolution<T>& version, const Shape& s, const Filter& filter) {
    return version
        .cannot_run({s.rows, s.cols, s.channels, filter.rows(), filter.cols(), filter.is_separable()})
        .empty();
}

// Runs `action(version)` for the version under test, as it is for floats and for bytes.
class VersionTest : public course::DeviceTestWithParam<std::string> {
  protected:
    template <class T>
    const day10::Convolution<T>& version() const {
        return course::find_version(day10::versions<T>(), GetParam());
    }

    template <class T>
    void expect_right(const Shape& s, const Filter& filter, Border border,
                      DataPattern pattern = DataPattern::kSignedUniform) const {
        if (!can_run(version<T>(), s, filter)) return;
        const course::VerifyResult result = check(version<T>(), s, filter, border, pattern);
        EXPECT_TRUE(result.ok()) << (sizeof(T) == 1 ? "bytes, " : "floats, ") << text(s, filter, border)
                                 << ": " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayTen, VersionTest, testing::ValuesIn(course::names(day10::versions<float>())),
                         [](const auto& version) { return version.param; });

// Around a tile, a block and a strip, in both directions; one pixel, one row, one column, nothing.
TEST_P(VersionTest, AllShapes) {
    const Filter filter = some_separable(5, 5);
    for (const Shape& s : {Shape{0, 0}, {0, 7},   {7, 0},    {1, 1},    {1, 130},  {131, 1},  {2, 3},
                           {7, 31},     {8, 32},  {9, 33},   {31, 63},  {32, 64},  {33, 65},  {34, 127},
                           {5, 128},    {6, 129}, {17, 511}, {18, 512}, {13, 513}, {101, 103}}) {
        expect_right<float>(s, filter, {BorderKind::kReplicate});
        expect_right<std::uint8_t>({s.rows, s.cols, 3}, filter, {BorderKind::kReplicate});
    }
}

// Every border, filters smaller and larger than the picture: reflections of reflections.
TEST_P(VersionTest, AllBordersAndFilters) {
    const bool separable = GetParam().starts_with("separable");
    for (const BorderKind kind : day10::kBorderKinds) {
        const Border border{kind, 100.25f};
        for (const auto& [rows, cols] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
                 {1, 1}, {3, 3}, {5, 5}, {7, 7}, {9, 9}, {11, 11}, {13, 13}, {1, 9}, {7, 3}, {3, 25}}) {
            const Filter filter = separable ? some_separable(rows, cols) : some_general(rows, cols);
            for (const std::size_t channels : {std::size_t{1}, std::size_t{3}}) {
                for (const Shape& s : {Shape{1, 1, channels}, {2, 3, channels}, {21, 6, channels}}) {
                    expect_right<float>(s, filter, border);
                    expect_right<std::uint8_t>(s, filter, border);
                }
            }
        }
    }
}

TEST_P(VersionTest, LargeFilters) {
    for (const auto& [rows, cols] : {std::pair{51, 51}, {129, 3}, {3, 129}, {1, 301}, {127, 129}}) {
        const Filter filter = some_separable(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
        for (const BorderKind kind : {BorderKind::kReflect, BorderKind::kWrap})
            expect_right<float>({5, 9, 3}, filter, {kind});
    }
}

TEST_P(VersionTest, AllPatterns) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
                                      DataPattern::kSorted, DataPattern::kWithNan, DataPattern::kWithInf}) {
        expect_right<float>({19, 37}, some_separable(3, 3), {BorderKind::kReflect}, pattern);
        expect_right<float>({19, 37}, some_separable(7, 13), {BorderKind::kReflect}, pattern);
    }
}

// A march of many steps, several bands, whole strips and ragged ones; the bands of a picture this
// high are not all alike.
TEST_P(VersionTest, HighAndWide) {
    const Filter filter = some_separable(7, 7);
    for (const BorderKind kind : day10::kBorderKinds) {
        expect_right<float>({259, 21}, filter, {kind, -3});
        expect_right<float>({10, 1100}, filter, {kind, -3});
    }
}

TEST_P(VersionTest, PaddedAndMisalignedPictures) {
    const Filter filter = some_separable(5, 5);
    for (const std::size_t offset : {0, 1, 2, 3}) {
        for (const auto& [in_gap, out_gap] :
             {std::pair<std::size_t, std::size_t>{0, 0}, {4, 0}, {0, 4}, {3, 1}}) {
            expect_right<float>({12, 132, 1, in_gap, out_gap, offset}, filter, {BorderKind::kWrap});
            expect_right<std::uint8_t>({6, 44, 3, in_gap, out_gap, offset}, filter, {BorderKind::kWrap});
        }
    }
}

TEST_P(VersionTest, RandomProblems) {
    course::Random random(20260110);
    SCOPED_TRACE("course::Random seed 20260110");
    for (int round = 0; round < 25; ++round) {
        const Shape s{1 + random.below(60), 1 + random.below(80), random.below(2) == 0 ? 1u : 3u,
                      random.below(6),      random.below(6),      random.below(4)};
        const std::size_t rows = 1 + 2 * random.below(7);
        const std::size_t cols = random.below(2) == 0 ? rows : 1 + 2 * random.below(7);
        const Filter filter = random.below(4) == 0 ? some_general(rows, cols) : some_separable(rows, cols);
        const Border border{day10::kBorderKinds[random.below(4)], random.uniform(-2, 2)};
        expect_right<float>(s, filter, border);
        expect_right<std::uint8_t>(s, filter, border);
    }
}

// Bytes: nearest integer, halves to even, and no wrapping beyond 0 and 255.
TEST_P(VersionTest, BytesRoundHalvesToEvenAndSaturate) {
    const Filter half = Filter::separable({0, 0.5f, 0}, {0, 1, 0});
    const Filter triple = Filter::separable({0, -3, 0}, {0, -1, 0});
    const Filter negative = Filter::separable({0, -3, 0}, {0, 1, 0});
    const std::vector<std::uint8_t> values = {0, 1, 3, 5, 84, 85, 86, 255};
    const Shape s{1, values.size()};
    const auto& bytes = version<std::uint8_t>();
    EXPECT_EQ(convolve(bytes, values, s, half, {}).values,
              (std::vector<std::uint8_t>{0, 0, 2, 2, 42, 42, 43, 128}));
    EXPECT_EQ(convolve(bytes, values, s, triple, {}).values,
              (std::vector<std::uint8_t>{0, 3, 9, 15, 252, 255, 255, 255}));
    EXPECT_EQ(convolve(bytes, values, s, negative, {}).values, std::vector<std::uint8_t>(values.size(), 0));
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    DeviceBuffer<float> in(64), out(64), workspace(64);
    const Filter filter = some_separable(3, 3);
    const course::CapturedWork work([&](cudaStream_t stream) {
        version<float>().launcher(DevicePicture<float>(in.span(), 8, 8, 1), {out.span(), 8, 8, 1}, filter, {},
                                  workspace.span(), stream);
    });
    const bool one =
        GetParam() == "naive" || GetParam() == "separable_fused" || GetParam() == "separable_streaming";
    const std::size_t expected = one ? 1 : 2;  // a kernel alone, or with a copy of the filter, or two passes
    EXPECT_EQ(work.nodes(), expected)
        << "kernels and copies on the stream that was given: expected " << expected << ", got "
        << work.nodes() << ". Is `stream` an argument of each launch and each copy?";
}

TEST_P(VersionTest, RefusesWhatItCannotDo) {
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(300))};
    const auto at = [&](std::size_t offset, std::size_t rows, std::size_t cols, std::size_t channels) {
        return DevicePicture<float>(buffer.span().subspan(offset, rows * cols * channels), rows, cols,
                                    channels);
    };
    const Filter filter = some_separable(3, 3);
    const auto message = [&](const DevicePicture<float>& in, const DevicePicture<float>& out,
                             const Filter& f) {
        try {
            version<float>().launcher(in, out, f, {}, buffer.span().subspan(200, 100), nullptr);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("nothing thrown");
    };
    EXPECT_EQ(
        message(at(0, 4, 5, 1), at(20, 5, 4, 1), filter),
        "convolution: `in` is 4 x 5 x 1 and `out` 5 x 4 x 1 (rows x cols x channels); expected the same");
    EXPECT_EQ(message(at(0, 4, 5, 2), at(40, 4, 5, 2), filter), "convolution: 2 channels; expected 1 or 3");
    EXPECT_EQ(message(at(0, 4, 5, 1), at(0, 4, 5, 1), filter),
              "convolution: `out` overlaps `in`; expected nothing in common");
    EXPECT_EQ(message(at(0, 4, 5, 1), at(19, 4, 5, 1), filter),
              "convolution: `out` overlaps `in`; expected nothing in common");
    if (GetParam().starts_with("separable")) {
        EXPECT_EQ(message(at(0, 4, 5, 1), at(20, 4, 5, 1), some_general(3, 3)),
                  "convolution: the filter is not separable");
    }
    if (GetParam() == "separable_two_pass") {
        EXPECT_EQ(message(at(0, 10, 5, 1), at(50, 10, 5, 1), filter), "nothing thrown");
        EXPECT_EQ(message(at(0, 101, 1, 1), at(101, 99, 1, 1), filter).find("`in` is") != std::string::npos,
                  true);
        DeviceBuffer<float> large(101), other(101);
        EXPECT_EQ(message({large.span(), 101, 1, 1}, {other.span(), 101, 1, 1}, filter),
                  "convolution: a workspace of 100 floats; expected rows * cols * channels = 101");
    }
    if (GetParam() == "separable_two_pass") {  // the workspace begins at 200
        const std::string expected =
            "convolution: `workspace` overlaps a picture; expected nothing in common";
        EXPECT_EQ(message(at(181, 4, 5, 1), at(20, 4, 5, 1), filter), expected);
        EXPECT_EQ(message(at(0, 4, 5, 1), at(219, 4, 5, 1), filter), expected);
        EXPECT_EQ(message(at(180, 4, 5, 1), at(220, 4, 5, 1), filter), "nothing thrown") << "20 floats of it";
    }
    if (GetParam() == "naive") {
        const auto with_filter = [](std::size_t rows, std::size_t cols) {
            return day10::Problem{.rows = 1, .cols = 1, .filter_rows = rows, .filter_cols = cols};
        };
        EXPECT_EQ(version<float>().cannot_run(with_filter(32769, 32769)),
                  "a filter of 32769 x 32769; expected at most 2^30 weights");
        EXPECT_EQ(version<float>().cannot_run(with_filter(32767, 32767)), "");
        EXPECT_NE(version<float>().cannot_run(with_filter(1, (std::size_t{1} << 32) + 1)), "");
    }
    if (GetParam() == "constant_filter" || GetParam() == "shared_halo" || GetParam() == "cached_halo") {
        EXPECT_EQ(message(at(0, 4, 5, 1), at(20, 4, 5, 1), some_general(129, 129)),
                  "convolution: constant memory holds 16384 weights; the filter has 129 x 129");
    }
    if (GetParam() == "shared_halo" || GetParam() == "separable_fused") {
        EXPECT_NE(
            message(at(0, 4, 5, 1), at(20, 4, 5, 1), some_separable(127, 127)).find("bytes of shared memory"),
            std::string::npos);
    }
}

// The last rows of a convolved picture; `data` are its last rows, and above them it is zeros.
course::VerifyResult verify_last_rows(const std::vector<float>& got, const std::vector<float>& data,
                                      std::size_t cols, const Filter& filter) {
    std::vector<float> with_row_above(cols);
    with_row_above.insert(with_row_above.end(), data.begin(), data.end());
    day10::Expected expected =
        day10::convolve_on_cpu<float>(with_row_above, data.size() / cols + 1, cols, 1, filter, {});
    expected.value.erase(expected.value.begin(), expected.value.begin() + static_cast<std::ptrdiff_t>(cols));
    expected.magnitude.erase(expected.magnitude.begin(),
                             expected.magnitude.begin() + static_cast<std::ptrdiff_t>(cols));
    return day10::verify_convolution(got, expected, filter);
}

// 2^31 values and more, 17 GB: offsets in 32 bits would wrap. Only the last rows are looked at; a
// row of ones before zeros.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t rows = 32771;
    const std::size_t cols = 65539;
    if (const std::string reason = course::why_not_so_large(3 * rows * cols * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> in(rows * cols), out(rows * cols), workspace(rows * cols);
    CUDA_CHECK(cudaMemset(in.data(), 0, in.bytes()));
    CUDA_CHECK(cudaMemset(out.data(), 0xff, out.bytes()));
    const std::size_t tail = 4;  // rows of data at the end
    const std::vector<float> data = course::make_data<float>(tail * cols, DataPattern::kSignedUniform, kSeed);
    CUDA_CHECK(cudaMemcpy(in.data() + (rows - tail) * cols, data.data(), data.size() * sizeof(float),
                          cudaMemcpyHostToDevice));
    const Filter filter = some_separable(3, 3);
    version<float>().launcher(DevicePicture<float>(in.span(), rows, cols, 1), {out.span(), rows, cols, 1},
                              filter, {}, workspace.span(), nullptr);
    std::vector<float> got(tail * cols);
    CUDA_CHECK(cudaMemcpy(got.data(), out.data() + (rows - tail) * cols, got.size() * sizeof(float),
                          cudaMemcpyDeviceToHost));
    const course::VerifyResult result = verify_last_rows(got, data, cols, filter);
    EXPECT_TRUE(result.ok()) << result.message();
}

// The same on the CPU, where only the last blocks run: the picture is so narrow that they have its
// last rows.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t rows = 26843872;
    const std::size_t cols = 160;
    const std::size_t tail = 4 * cols;  // values of the last rows
    const std::vector<double> end = {1};
    const course::LargeArray<float> in(rows * cols, 4096 * cols, end);
    const course::LargeArray<float> out(rows * cols, 4096 * cols, end);
    const course::LargeArray<float> workspace(rows * cols, 4096 * cols, end);
    const std::vector<float> data = course::make_data<float>(tail, DataPattern::kSignedUniform, kSeed);
    std::ranges::copy(data, &in[rows * cols - tail]);
    const Filter filter = some_separable(3, 3);
    course::run_few_blocks(
        [&] {
            version<float>().launcher(DevicePicture<float>(in.span(), rows, cols, 1),
                                      {out.span(), rows, cols, 1}, filter, {}, workspace.span(), nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    const std::vector<float> got(&out[rows * cols - tail], &out[rows * cols - 1] + 1);
    const course::VerifyResult result = verify_last_rows(got, data, cols, filter);
    EXPECT_TRUE(result.ok()) << course::large_element(rows * cols - tail, rows * cols) << '\n'
                             << result.message();
}

// --- Against OpenCV ------------------------------------------------------------------------------

template <class T>
cv::Mat mat(std::vector<T>& values, const Shape& s) {
    const int depth = std::is_same_v<T, float> ? CV_32F : CV_8U;
    return {static_cast<int>(s.rows), static_cast<int>(s.cols),
            CV_MAKETYPE(depth, static_cast<int>(s.channels)), values.data()};
}

// Runs `filter(padded)` on the picture with its border made by OpenCV, and cuts the middle out:
// filters of OpenCV refuse BORDER_WRAP and constants other than 0, copyMakeBorder does not.
template <class T, class Function>
std::vector<T> inside_border(std::vector<T> values, const Shape& s, const Filter& filter, Border border,
                             Function function) {
    const int down = static_cast<int>(filter.rows() / 2);
    const int across = static_cast<int>(filter.cols() / 2);
    cv::Mat padded;
    cv::copyMakeBorder(mat(values, s), padded, down, down, across, across, day10::opencv_border(border.kind),
                       cv::Scalar::all(static_cast<double>(border.value)));
    cv::Mat filtered;
    function(padded, filtered);
    const cv::Mat middle =
        filtered(cv::Rect(across, down, static_cast<int>(s.cols), static_cast<int>(s.rows))).clone();
    return {middle.ptr<T>(), middle.ptr<T>() + s.size()};
}

// Two float sums of the same terms, each within the bound of the exact one; each side is held to
// it.
TEST_P(VersionTest, AgreesWithFilter2D) {
    for (const BorderKind kind : day10::kBorderKinds) {
        for (const Filter& filter : {some_separable(5, 7), some_separable(3, 3)}) {
            const Border border{kind, 3};
            const Shape s{23, 41, 3};
            cv::Mat weights(static_cast<int>(filter.rows()), static_cast<int>(filter.cols()), CV_32F,
                            const_cast<float*>(filter.weights().data()));
            const auto filter2d = [&](const cv::Mat& in, cv::Mat& out) {
                cv::filter2D(in, out, -1, weights);
            };

            const auto floats = course::make_data<float>(s.size(), DataPattern::kSignedUniform, kSeed);
            const auto expected =
                day10::convolve_on_cpu<float>(floats, s.rows, s.cols, s.channels, filter, border);
            const auto theirs = inside_border(floats, s, filter, border, filter2d);
            EXPECT_TRUE(day10::verify_convolution(theirs, expected, filter).ok()) << text(s, filter, border);
            expect_right<float>(s, filter, border);

            // Bytes: both round a float sum to the nearest integer, so they differ by 1 at most,
            // and only where the exact sum is nearly half-way between two integers.
            const auto bytes = course::make_data<std::uint8_t>(s.size(), DataPattern::kSignedUniform, kSeed);
            const auto exact =
                day10::convolve_on_cpu<std::uint8_t>(bytes, s.rows, s.cols, s.channels, filter, border);
            const auto byte_theirs = inside_border(bytes, s, filter, border, filter2d);
            const auto ours = convolve(version<std::uint8_t>(), bytes, s, filter, border).values;
            for (std::size_t i = 0; i < ours.size(); ++i) {
                if (ours[i] == byte_theirs[i]) continue;
                const double from_half = std::abs(exact.value[i] - std::floor(exact.value[i]) - 0.5);
                if (std::abs(ours[i] - byte_theirs[i]) <= 1 && from_half <= 1e-3) continue;
                ADD_FAILURE() << "bytes, " << text(s, filter, border) << ", row " << i / s.width()
                              << ", value " << i % s.width() << ": expected " << int{byte_theirs[i]}
                              << " as OpenCV, from the sum " << exact.value[i] << ", got " << int{ours[i]};
                break;  // one says enough
            }
        }
    }
}

TEST_P(VersionTest, BlursLikeGaussianBlur) {
    for (const BorderKind kind : day10::kBorderKinds) {
        for (const double sigma : {0.6, 1.5, 4.0}) {
            const std::size_t taps = day10::gaussian_size(sigma);
            const Filter filter = day10::gaussian_filter(taps, sigma);
            for (const std::size_t channels : {std::size_t{1}, std::size_t{3}}) {
                const Shape s{31, 45, channels};
                const auto values = course::make_data<float>(s.size(), DataPattern::kSignedUniform, kSeed);
                if (!can_run(version<float>(), s, filter)) continue;
                const auto theirs =
                    inside_border(values, s, filter, {kind}, [&](const cv::Mat& in, cv::Mat& out) {
                        cv::GaussianBlur(in, out, cv::Size(static_cast<int>(taps), static_cast<int>(taps)),
                                         sigma);
                    });
                const auto ours = convolve(version<float>(), values, s, filter, {kind});
                const auto expected =
                    day10::convolve_on_cpu<float>(values, s.rows, s.cols, channels, filter, {kind});
                // Against OpenCV's result as the exact one, with twice the bound: it has errors of
                // its own.
                const day10::Expected opencv{std::vector<double>(theirs.begin(), theirs.end()),
                                             expected.magnitude};
                const course::VerifyResult result = course::verify(
                    ours.values, opencv.value, {.terms = taps * taps, .factor = 4}, opencv.magnitude);
                EXPECT_TRUE(result.ok()) << text(s, filter, {kind}) << ": " << result.message();
            }
        }
    }
}

// --- Filters and borders -------------------------------------------------------------------------

template <class Function>
std::string thrown_by(Function function) {
    try {
        function();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "nothing thrown";
}

// A filter has a copy of its weights on the device.
using Reference = course::DeviceTest;
using Gaussian = course::DeviceTest;
using Filters = course::DeviceTest;

TEST_F(Reference, BordersAreThoseOfOpenCV) {
    for (const BorderKind kind : day10::kBorderKinds) {
        if (kind == BorderKind::kConstant) continue;
        for (const int n : {1, 2, 5}) {
            std::vector<float> row(static_cast<std::size_t>(n));
            for (int i = 0; i < n; ++i)
                row[static_cast<std::size_t>(i)] = static_cast<float>(i);
            for (int shift = -13; shift <= 13;
                 ++shift) {  // a filter that is 1 at one place moves the picture
                std::vector<float> weights(27, 0.0f);
                weights[static_cast<std::size_t>(13 + shift)] = 1;
                const auto moved = day10::convolve_on_cpu<float>(row, 1, row.size(), 1,
                                                                 Filter::general(1, 27, weights), {kind});
                for (int i = 0; i < n; ++i) {
                    EXPECT_EQ(moved.value[static_cast<std::size_t>(i)],
                              cv::borderInterpolate(i + shift, n, day10::opencv_border(kind)))
                        << name(kind) << ", " << n << " places, place " << i + shift;
                }
            }
        }
    }
}

TEST_F(Gaussian, WeightsAreThoseOfOpenCVAndOfTheNormalDensity) {
    for (const double sigma : {0.3, 1.0, 2.5, 40.0}) {
        for (const std::size_t size :
             {std::size_t{1}, std::size_t{3}, std::size_t{11}, day10::gaussian_size(sigma)}) {
            const std::vector<float> weights = day10::gaussian_weights(size, sigma);
            const cv::Mat theirs = cv::getGaussianKernel(static_cast<int>(size), sigma, CV_64F);
            const double middle = -static_cast<double>(size / 2);
            const auto density = day10::normal_density_on_cpu(
                size, size, {.sigma_x = sigma, .sigma_y = sigma}, {.first_x = middle, .first_y = middle});
            double sum = 0;
            for (const double p : density.value)
                sum += p;
            const Filter filter = day10::gaussian_filter(size, sigma);
            for (std::size_t i = 0; i < size; ++i) {
                EXPECT_FLOAT_EQ(weights[i], static_cast<float>(theirs.at<double>(static_cast<int>(i))));
                if (weights[i] < std::numeric_limits<float>::min()) continue;  // fewer digits, or none
                // Two weights, each rounded once: off by 2^-24 of itself.
                const double square = density.value[i * size + i] / sum;
                EXPECT_NEAR(filter.weight(i, i), square, 0x1.1p-23 * square) << size << " " << sigma;
            }
        }
    }
    EXPECT_EQ(day10::gaussian_size(4), 25u);
    EXPECT_EQ(day10::gaussian_size(1.5), 11u);
}

TEST_F(Filters, AreRefusedWithAReason) {
    EXPECT_EQ(thrown_by([] { Filter::general(2, 3, std::vector<float>(6)); }),
              "filter: 2 x 3; expected odd numbers, so that there is a middle");
    EXPECT_EQ(thrown_by([] { Filter::general(3, 3, std::vector<float>(8)); }),
              "filter: 8 weights for 3 x 3; expected their product");
    EXPECT_EQ(thrown_by([] {
                  Filter::separable({1, 2, 3}, {});
              }),
              "filter: 3 x 0; expected odd numbers, so that there is a middle");
    EXPECT_EQ(thrown_by([] { day10::gaussian_weights(4, 1); }),
              "gaussian filter: size 4; expected an odd number");
    for (const double sigma : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
        EXPECT_NE(thrown_by([&] { day10::gaussian_weights(3, sigma); }).find("sigma"), std::string::npos)
            << sigma;
        EXPECT_NE(thrown_by([&] { day10::gaussian_size(sigma); }).find("sigma"), std::string::npos) << sigma;
    }
    EXPECT_EQ(thrown_by([] { day10::border_named("miror"); }).find("unknown border 'miror'"), 0u);
    EXPECT_EQ(day10::border_named("wrap"), BorderKind::kWrap);
}

// Small whole weights: all sums are exact, so two passes and the sum of all terms must agree to the
// last digit.
TEST_F(Reference, TwoPassesAreTheDirectSum) {
    for (const BorderKind kind : day10::kBorderKinds) {
        for (const Shape& s : {Shape{1, 1, 1}, {2, 3, 3}, {9, 14, 1}, {17, 8, 3}}) {
            for (const DataPattern pattern : {DataPattern::kSignedUniform, DataPattern::kWithInf}) {
                const std::vector<float> values = course::make_data<float>(s.size(), pattern, kSeed);
                const Filter two_passes = Filter::separable({1, -2, 3, 5, -7}, {4, 1, -9});
                const Filter direct = Filter::general(5, 3, two_passes.weights());
                const Border border{kind, -2.5f};
                const auto ours =
                    day10::convolve_on_cpu<float>(values, s.rows, s.cols, s.channels, two_passes, border);
                const auto expected =
                    day10::convolve_on_cpu<float>(values, s.rows, s.cols, s.channels, direct, border);
                for (std::size_t i = 0; i < s.size(); ++i) {
                    if (std::isnan(expected.value[i])) {
                        EXPECT_TRUE(std::isnan(ours.value[i])) << text(s, direct, border) << " value " << i;
                        continue;
                    }
                    EXPECT_EQ(ours.value[i], expected.value[i]) << text(s, direct, border) << " value " << i;
                    EXPECT_EQ(ours.magnitude[i], expected.magnitude[i]) << text(s, direct, border);
                }
            }
        }
    }
}

TEST_F(Reference, RefusesAPictureOfAnotherSize) {
    const std::vector<float> five(5);
    EXPECT_THROW(day10::convolve_on_cpu<float>(five, 2, 3, 1, some_general(1, 1), {}), std::invalid_argument);
}

// --- The normal density --------------------------------------------------------------------------

class NormalDensity : public course::DeviceTest {};

TEST_F(NormalDensity, AgreesWithTheCpu) {
    const day10::Normal2d normals[] = {
        {}, {.mean_x = 1000, .mean_y = -3, .sigma_x = 0.5, .sigma_y = 7, .correlation = -0.9}};
    for (const day10::Normal2d& normal : normals) {
        for (const auto& [rows, cols] :
             {std::pair<std::size_t, std::size_t>{0, 5}, {1, 1}, {1, 257}, {61, 67}}) {
            const day10::Grid2d grid{normal.mean_x - 3 * normal.sigma_x, normal.mean_y - 4 * normal.sigma_y,
                                     normal.sigma_x / 9, normal.sigma_y / 8};
            GuardedBuffer<float> out(rows * cols);
            day10::normal_density(out.matrix(rows, cols), normal, grid, nullptr);
            const auto expected = day10::normal_density_on_cpu(rows, cols, normal, grid);
            // Roundings: u, v, two squares or products, two coefficients, two sums, the product of
            // the two, expf, top.
            course::VerifyResult result =
                course::verify(out.to_host(), expected.value, {.terms = 5}, expected.magnitude, cols);
            result.damage = out.damage();
            EXPECT_TRUE(result.ok()) << rows << " x " << cols << ": " << result.message();
        }
    }
}

// Squares beyond what float holds, and products of them that would be Inf - Inf.
TEST_F(NormalDensity, IsZeroFarAway) {
    for (const double far : {2e19, 1e30, 1e60}) {
        for (const double correlation : {-0.9, 0.0, 0.9}) {
            const day10::Normal2d normal{.correlation = correlation};
            const day10::Grid2d grid{-far, -far, 2 * far, 2 * far};  // the four corners
            GuardedBuffer<float> out(4);
            day10::normal_density(out.matrix(2, 2), normal, grid, nullptr);
            EXPECT_EQ(out.to_host(), std::vector<float>(4, 0.0f)) << far << " " << correlation;
        }
    }
}

TEST_F(NormalDensity, IsADensity) {
    const day10::Normal2d normal{
        .mean_x = 1, .mean_y = 2, .sigma_x = 0.5, .sigma_y = 0.25, .correlation = 0.5};
    const auto density = day10::normal_density_on_cpu(400, 400, normal, {-4, -3, 0.025, 0.025});
    double mass = 0;
    double mean_x = 0;
    double mixed = 0;
    for (std::size_t i = 0; i < density.value.size(); ++i) {
        const double x = -4 + 0.025 * static_cast<double>(i % 400);
        const double y = -3 + 0.025 * static_cast<double>(i / 400);
        const double share = density.value[i] * 0.025 * 0.025;
        mass += share;
        mean_x += share * x;
        mixed += share * (x - 1) * (y - 2);
    }
    EXPECT_NEAR(mass, 1, 1e-9);
    EXPECT_NEAR(mean_x, 1, 1e-9);
    EXPECT_NEAR(mixed, 0.5 * 0.5 * 0.25, 1e-9) << "covariance = rho sigma_x sigma_y";
}

TEST_F(NormalDensity, RefusesWhatIsNoDistribution) {
    DeviceBuffer<float> out(4);
    const auto message = [&](const day10::Normal2d& normal) {
        return thrown_by([&] { day10::normal_density(out.matrix(2, 2), normal, {}, nullptr); });
    };
    EXPECT_EQ(message({.sigma_x = 0}), "normal_density: sigma_x 0; expected a finite number > 0");
    EXPECT_EQ(message({.sigma_y = -1}), "normal_density: sigma_y -1; expected a finite number > 0");
    EXPECT_EQ(message({.correlation = 1}),
              "normal_density: correlation 1; expected a number between -1 and 1");
    EXPECT_NE(message({.mean_x = std::nan("")}).find("mean_x"), std::string::npos);
    for (const day10::Normal2d& steep :
         {day10::Normal2d{.sigma_x = 1e-30, .sigma_y = 1e-30}, {.sigma_x = 1e-200, .sigma_y = 1e-200}})
        EXPECT_NE(message(steep).find("expected a number that float can hold"), std::string::npos);
    EXPECT_EQ(message({.sigma_x = 1e-30}), "nothing thrown") << "6e29";
}

}  // namespace
