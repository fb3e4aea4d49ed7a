// Every version of softmax and log-softmax against the CPU, and the element-wise functions against
// theirs.
#include "softmax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "elementwise.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::refusal;
using day20::MaxSum;
using day20::Output;

constexpr std::uint64_t kSeed = 20;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kHuge = std::numeric_limits<float>::max();

course::VerifyResult compare(Output output, const std::vector<float>& in, const std::vector<float>& got) {
    std::vector<double> expected(in.size());
    std::vector<double> magnitude(in.size());
    day20::softmax_on_cpu(output, in, expected);
    day20::error_magnitudes(output, in, expected, magnitude);
    return course::verify(got, expected, {}, magnitude);
}

class VersionTest : public course::DeviceTestWithParam<const day20::Softmax*> {
  protected:
    void launch(Output output, DeviceSpan<const float> in, DeviceSpan<float> out,
                DeviceSpan<MaxSum> workspace, cudaStream_t stream = nullptr) const {
        GetParam()->launcher(output, in, out, workspace, stream);
    }

    bool can_run(std::size_t n, Output output) const { return GetParam()->cannot_run({n, output}).empty(); }

    // Runs the version. The input and the output begin so many elements after an aligned address.
    // A write beside the output or into the input is damage.
    course::VerifyResult run(Output output, const std::vector<float>& data, std::size_t in_offset = 0,
                             std::size_t out_offset = 0, bool in_place = false) const {
        GuardedBuffer<float> in(data.size(), in_offset);
        in.copy_from(data);
        GuardedBuffer<float> out(in_place ? 0 : data.size(), out_offset);
        DeviceBuffer<MaxSum> workspace(day20::workspace_size(data.size()));
        GuardedBuffer<float>& result = in_place ? in : out;
        launch(output, in.span(), result.span(), workspace.span());
        course::VerifyResult verified = compare(output, data, result.to_host());
        verified.damage = result.damage();
        if (!in_place) {
            const std::vector<float> after = in.to_host();
            if (!std::equal(after.begin(), after.end(), data.begin(),
                            [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }))
                verified.damage += " the input was changed";
        }
        return verified;
    }

    // Both outputs, as far as the version computes them.
    void expect_right_for(const std::vector<float>& data, const std::string& what, std::size_t in_offset = 0,
                          std::size_t out_offset = 0, bool in_place = false) const {
        for (const Output output : {Output::kSoftmax, Output::kLogSoftmax}) {
            if (!can_run(data.size(), output)) continue;
            const course::VerifyResult result = run(output, data, in_offset, out_offset, in_place);
            EXPECT_TRUE(result.ok()) << day20::name(output) << " of " << data.size() << ", " << what << ": "
                                     << result.message();
        }
    }

    void expect_right(std::size_t n, DataPattern pattern, std::size_t in_offset = 0,
                      std::size_t out_offset = 0, bool in_place = false) const {
        expect_right_for(course::make_data<float>(n, pattern, kSeed), std::string(course::name(pattern)),
                         in_offset, out_offset, in_place);
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwenty, VersionTest, course::each_of(day20::versions()), course::VersionName());

// Around a warp, a block, and the 1024 elements from which on there are two blocks.
TEST_P(VersionTest, SmallSizes) {
    for (const std::size_t n :
         {1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024})
        expect_right(n, DataPattern::kNormal);
    expect_right(8, DataPattern::kSignedUniform);
}

// Up to more parts than a block has threads.
TEST_P(VersionTest, LongRows) {
    for (const std::size_t n : {1025, 2048, 2049, 4100, 8193, 32768, 32769, 104729, 256 * 1024 + 1})
        expect_right(n, DataPattern::kNormal);
}

// Its exponential is infinite if the maximum of any part is left out. 257 parts are more than a
// block has threads; element 65536 is in the last part.
TEST_P(VersionTest, TheMaximumMayBeAnywhere) {
    const std::size_t n = 256 * 1024 + 1;
    for (const std::size_t place : {std::size_t{0}, std::size_t{65536}, n - 1}) {
        std::vector<float> data(n, -1.0f);
        data[place] = 200;
        expect_right_for(data, "200 at " + std::to_string(place));
    }
}

TEST_P(VersionTest, Patterns) {
    for (const DataPattern pattern :
         {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
          DataPattern::kSorted, DataPattern::kReversed, DataPattern::kWithNan, DataPattern::kWithInf}) {
        for (const std::size_t n : {7, 260, 9001, 33001})
            expect_right(n, pattern);
    }
}

TEST_P(VersionTest, RowsWithNanAndInfinity) {
    for (const std::size_t n : {1, 6, 900, 9000}) {
        const std::size_t middle = n / 2;
        const std::vector<float> plain = course::make_data<float>(n, DataPattern::kNormal, kSeed);
        const auto with = [&](float fill, std::size_t at, float value) {
            std::vector<float> row(n, fill);
            row[at] = value;
            return row;
        };
        std::vector<float> nan = plain;
        nan[middle] = kNan;
        std::vector<float> inf = plain;
        inf[n - 1] = kInf;
        std::vector<float> half = plain;
        std::fill_n(half.begin(), middle, -kInf);
        expect_right_for(std::vector<float>(n, -kInf), "all -Inf");
        expect_right_for(nan, "a NaN");
        expect_right_for(std::vector<float>(n, kNan), "all NaN");
        expect_right_for(with(-kInf, n - 1, kNan), "a NaN, else -Inf");
        expect_right_for(inf, "a +Inf");
        expect_right_for(std::vector<float>(n, kInf), "all +Inf");
        expect_right_for(half, "first half -Inf");
        expect_right_for(with(-kInf, 0, -3.0f), "one finite first, else -Inf");
        expect_right_for(with(-kInf, n - 1, 7.0f), "one finite last, else -Inf");
        expect_right_for(std::vector<float>(n, kHuge), "all the largest float");
        expect_right_for(std::vector<float>(n, -kHuge), "all the lowest float");
        expect_right_for(with(-kHuge, middle, kHuge), "largest beside lowest");
        expect_right_for(with(3.0e38f, 0, 2.9e38f), "huge steps");
    }
}

// In ascending order every element is a new maximum, and the sum is rescaled each time.
TEST_P(VersionTest, WideRangesAscendingAndDescending) {
    for (const std::size_t n : {300, 9000, 33000}) {
        std::vector<float> data = course::make_data<float>(n, DataPattern::kSorted, kSeed);
        for (float& x : data)
            x *= 60;
        expect_right_for(data, "ascending");
        std::reverse(data.begin(), data.end());
        expect_right_for(data, "descending");
    }
}

TEST_P(VersionTest, AnyAlignment) {
    const std::pair<std::size_t, std::size_t> offsets[] = {{1, 0}, {0, 1}, {2, 1}, {0, 4}, {8, 0}, {2, 2}};
    for (const auto& [in, out] : offsets) {
        for (const std::size_t n : {100, 2052, 33000})
            expect_right(n, DataPattern::kNormal, in, out);
    }
}

TEST_P(VersionTest, ResultMayReplaceTheInput) {
    for (const std::size_t n : {33, 1000, 5000, 34000}) {
        expect_right(n, DataPattern::kNormal, 0, 0, true);
        expect_right(n, DataPattern::kNormal, 1, 0, true);
    }
}

TEST_P(VersionTest, RandomSizes) {
    course::Random random(20200101);
    SCOPED_TRACE("course::Random seed 20200101");
    for (int round = 0; round < 15; ++round) {
        const std::size_t n = 1 + random.below(1U << random.below(16));
        expect_right(n, DataPattern::kNormal, random.below(4), random.below(4));
    }
}

TEST_P(VersionTest, NothingToDo) {
    GuardedBuffer<float> none(0);
    DeviceBuffer<MaxSum> workspace(0);
    launch(Output::kSoftmax, none.span(), none.span(), workspace.span());
    EXPECT_EQ(none.damage(), "");
}

// Captured into a graph, and right when the graph is launched.
TEST_P(VersionTest, RunsOnTheGivenStream) {
    const std::vector<float> data = course::make_data<float>(900, DataPattern::kNormal, kSeed);
    const DeviceBuffer<float> in{std::span(data)};
    GuardedBuffer<float> out(900);
    DeviceBuffer<MaxSum> workspace(day20::workspace_size(900));
    const course::CapturedWork work([&](cudaStream_t stream) {
        launch(Output::kSoftmax, in.span(), out.span(), workspace.span(), stream);
    });
    EXPECT_TRUE(std::isnan(out.to_host().front())) << "it ran instead of being captured";
    work.run();
    const course::VerifyResult result = compare(Output::kSoftmax, data, out.to_host());
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(64, 1.0f))};
    DeviceBuffer<MaxSum> workspace(1);
    const auto part = [&](std::size_t offset, std::size_t n) { return buffer.span().subspan(offset, n); };
    const auto with = [&](DeviceSpan<float> in, DeviceSpan<float> out, DeviceSpan<MaxSum> space) {
        return refusal([&] { launch(Output::kSoftmax, in, out, space); });
    };
    EXPECT_EQ(with(part(0, 8), part(16, 9), workspace.span()),
              "softmax: in has 8 elements and out 9; expected the same number");
    EXPECT_EQ(with(part(0, 8), part(16, 0), workspace.span()),
              "softmax: in has 8 elements and out 0; expected the same number");
    EXPECT_EQ(with(part(0, 8), part(16, 8), workspace.span().subspan(0, 0)),
              "softmax: workspace has 0 elements; expected at least 1");
    const std::string overlap =
        "softmax: out overlaps in but is not in; expected the same elements or none in common";
    EXPECT_EQ(with(part(0, 8), part(7, 8), workspace.span()), overlap);
    EXPECT_EQ(with(part(7, 8), part(0, 8), workspace.span()), overlap);
    EXPECT_EQ(with(part(0, 8), part(8, 8), workspace.span()), "");
    EXPECT_EQ(with(part(8, 8), part(0, 8), workspace.span()), "");

    DeviceBuffer<float> long_row{std::span<const float>(std::vector<float>(1025, 1.0f))};
    EXPECT_EQ(with(long_row.span(), long_row.span(), workspace.span()),
              "softmax: workspace has 1 elements; expected at least 2");
}

TEST_P(VersionTest, RefusesWhatItCannotRun) {
    const std::string reason = GetParam()->cannot_run({4, Output::kLogSoftmax});
    EXPECT_EQ(reason, GetParam()->name == "online" ? "" : "computes softmax, not log_softmax");
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(4, 1.0f))};
    DeviceBuffer<MaxSum> workspace(1);
    EXPECT_EQ(refusal([&] { launch(Output::kLogSoftmax, buffer.span(), buffer.span(), workspace.span()); }),
              reason.empty() ? "" : "softmax: this version " + reason);
}

// More elements than 32 bits count, in place, 17 GB: zeros, and in some places something else.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    constexpr std::size_t kWindow = 1024;
    const std::size_t n = kWindow * ((std::size_t{1} << 22) + 3);
    if (const std::string reason = course::why_not_so_large(n * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> data(n);
    DeviceBuffer<MaxSum> workspace(day20::workspace_size(n));
    CUDA_CHECK(cudaMemset(data.data(), 0, data.bytes()));
    // The sum is n and exact, except for the few places that hold something else.
    const std::vector<float> window = course::make_data<float>(kWindow, DataPattern::kNormal, kSeed);
    const std::size_t places[] = {0, (n / 4 - kWindow) / kWindow * kWindow,
                                  (n / 2 + kWindow) / kWindow * kWindow, n - kWindow};
    for (const std::size_t place : places)
        CUDA_CHECK(
            cudaMemcpy(data.data() + place, window.data(), kWindow * sizeof(float), cudaMemcpyHostToDevice));
    launch(Output::kSoftmax, data.span(), data.span(), workspace.span());

    auto sum = static_cast<double>(n - 4 * kWindow);
    for (const float x : window)
        sum += std::exp(static_cast<double>(x)) * 4;
    std::vector<double> expected;
    std::vector<double> magnitude;
    for (const float x : window) {
        expected.push_back(std::exp(static_cast<double>(x)) / sum);
        // The window's part of the sum errs as in a short row; the rest is exact until parts are
        // added.
        magnitude.push_back(expected.back() * 200);
    }
    std::vector<float> got(kWindow);
    for (const std::size_t place : places) {
        CUDA_CHECK(
            cudaMemcpy(got.data(), data.data() + place, kWindow * sizeof(float), cudaMemcpyDeviceToHost));
        const course::VerifyResult result = course::verify(got, expected, {}, magnitude);
        EXPECT_TRUE(result.ok()) << "from element " << place << ": " << result.message();
    }
    CUDA_CHECK(cudaMemcpy(got.data(), data.data() + n - 2 * kWindow, kWindow * sizeof(float),
                          cudaMemcpyDeviceToHost));
    const course::VerifyResult result =
        course::verify(got, std::vector<double>(kWindow, 1 / sum), {.terms = 200});
    EXPECT_TRUE(result.ok()) << "before the last window: " << result.message();
}

// One part for 1024 elements, and never more than every block can reduce quickly.
TEST(Workspace, HasAtMost1024Parts) {
    EXPECT_EQ(day20::workspace_size(0), 0u);
    EXPECT_EQ(day20::workspace_size(1024), 1u);
    EXPECT_EQ(day20::workspace_size(1025), 2u);
    EXPECT_EQ(day20::workspace_size(std::size_t{1} << 20), 1024u);
    EXPECT_EQ(day20::workspace_size(std::size_t{1} << 33), 1024u);
}

TEST(SoftmaxOnCpu, KnownValues) {
    std::vector<double> out(3);
    day20::softmax_on_cpu(Output::kSoftmax, std::vector<float>{0, 0, 0}, out);
    for (const double y : out)
        EXPECT_DOUBLE_EQ(y, 1.0 / 3);
    const std::vector<float> in = {1, 2, 3};
    day20::softmax_on_cpu(Output::kSoftmax, in, out);
    EXPECT_NEAR(out[0], 0.0900305731703804, 1e-15);
    EXPECT_NEAR(out[1], 0.2447284710547976, 1e-15);
    EXPECT_NEAR(out[2], 0.6652409557748219, 1e-15);
    day20::softmax_on_cpu(Output::kLogSoftmax, in, out);
    EXPECT_NEAR(out[2], std::log(0.6652409557748219), 1e-15);
    EXPECT_THROW(day20::softmax_on_cpu(Output::kSoftmax, std::vector<float>(2), out), std::invalid_argument);
}

// The bound must notice an element of a thousand missing in the sum.
TEST(ErrorMagnitudes, AreTightEnough) {
    const std::vector<float> in = course::make_data<float>(1000, DataPattern::kSignedUniform, kSeed);
    std::vector<double> out(1000);
    std::vector<double> without_last(999);
    day20::softmax_on_cpu(Output::kSoftmax, in, out);
    day20::softmax_on_cpu(Output::kSoftmax, std::span(in).first(999), without_last);
    std::vector<float> got(without_last.begin(), without_last.end());
    got.push_back(static_cast<float>(out.back()));
    EXPECT_EQ(compare(Output::kSoftmax, in, got).differing, 999U);
}

// --- Element-wise functions ----------------------------------------------------------------------

class ElementwiseTest : public course::DeviceTestWithParam<const day20::Elementwise*> {
  protected:
    course::VerifyResult run(const std::vector<float>& in, std::size_t in_offset,
                             std::size_t out_offset) const {
        GuardedBuffer<float> in_device(in.size(), in_offset);
        in_device.copy_from(in);
        GuardedBuffer<float> out(in.size(), out_offset);
        GetParam()->launcher(in_device.span(), out.span(), nullptr);
        course::VerifyResult result = compare_with_exact(in, out.to_host());
        result.damage = out.damage();
        return result;
    }

    course::VerifyResult compare_with_exact(const std::vector<float>& in,
                                            const std::vector<float>& got) const {
        std::vector<double> expected;
        std::vector<double> magnitude;
        for (const float x : in) {
            expected.push_back(GetParam()->exact(static_cast<double>(x)));
            magnitude.push_back(day20::error_magnitude(*GetParam(), static_cast<double>(x)));
        }
        return course::verify(got, expected, {.factor = 1}, magnitude);
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwenty, ElementwiseTest, course::each_of(day20::elementwise_functions()),
                         course::VersionName());

TEST_P(ElementwiseTest, AllSizesAndAlignments) {
    for (const std::size_t n : {0, 1, 3, 4, 5, 31, 33, 1023, 1024, 1027, 10007}) {
        std::vector<float> in = course::make_data<float>(n, DataPattern::kNormal, kSeed);
        for (float& x : in)
            x *= 4;
        const std::pair<std::size_t, std::size_t> offsets[] = {{0, 0}, {1, 1}, {2, 0}, {0, 2}, {0, 1}};
        for (const auto& [in_offset, out_offset] : offsets) {
            const course::VerifyResult result = run(in, in_offset, out_offset);
            EXPECT_TRUE(result.ok()) << n << " elements, in " << in_offset << " and out " << out_offset
                                     << " floats after an aligned address: " << result.message();
        }
    }
}

// On the CPU, where only the blocks at the beginning, in the middle (an int ends at element 2^31)
// and at the end run.
TEST_P(ElementwiseTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t n = (std::size_t{1} << 32) + 5;
    const course::LargeArray<float> in(n);
    const course::LargeArray<float> out(n);
    const std::size_t begins[] = {0, n / 2 - 512, n / 2, n - 512};  // blocks have at least 256 elements
    for (const std::size_t begin : begins)
        std::ranges::copy(course::make_data<float>(512, DataPattern::kNormal, begin), &in[begin]);
    course::run_few_blocks([&] { GetParam()->launcher(in.span(), out.span(), nullptr); });
    if (HasFatalFailure()) return;
    for (const std::size_t begin : begins) {
        const course::VerifyResult result =
            compare_with_exact({&in[begin], &in[begin] + 512}, {&out[begin], &out[begin] + 512});
        EXPECT_TRUE(result.ok()) << course::large_element(begin, n) << "\n" << result.message();
    }
}

TEST_P(ElementwiseTest, WholeRange) {
    std::vector<float> in = {0, -0.0f, 1e-30f, -1e-30f, 1e30f, -1e30f, kHuge, -kHuge, kNan, kInf, -kInf};
    for (int i = -12000; i <= 12000; ++i)
        in.push_back(static_cast<float>(i) / 100);
    const course::VerifyResult result = run(in, 0, 0);
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(ElementwiseTest, ResultMayReplaceTheInputAndNothingElse) {
    const std::vector<float> in = course::make_data<float>(1027, DataPattern::kNormal, kSeed);
    GuardedBuffer<float> data(in.size());
    data.copy_from(in);
    GetParam()->launcher(data.span(), data.span(), nullptr);
    const course::VerifyResult result = compare_with_exact(in, data.to_host());
    EXPECT_TRUE(result.ok()) << result.message();
    const auto launch = [&](std::size_t from, std::size_t to, std::size_t size) {
        return refusal([&] {
            GetParam()->launcher(data.span().subspan(from, 8), data.span().subspan(to, size), nullptr);
        });
    };
    EXPECT_EQ(launch(0, 7, 8),
              "elementwise: out overlaps in but is not in; expected the same elements or none in common");
    EXPECT_EQ(launch(0, 8, 7), "elementwise: in and out have 8 and 7 elements; expected the same number");
    EXPECT_EQ(launch(0, 8, 8), "");
}

}  // namespace
