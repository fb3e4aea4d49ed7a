// The selective scan against the recurrence in double; with whole numbers exactly.
#include "selective_scan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Random;
using day16::SelectiveInputs;
using day16::SelectiveScan;
using day16::SelectiveShape;
using day16::SelectiveVersion;

constexpr std::uint64_t kSeed = 16;

std::string text(const SelectiveShape& s) {
    return "batch " + std::to_string(s.batch) + ", channels " + std::to_string(s.channels) + ", length " +
           std::to_string(s.length) + ", states " + std::to_string(s.states) + ", course::Random seed " +
           std::to_string(kSeed);
}

SelectiveInputs empty_inputs(const SelectiveShape& s) {
    const auto floats = [](std::size_t n) { return std::vector<float>(n); };
    return {s,
            floats(s.batch * s.channels * s.length),
            floats(s.batch * s.channels * s.length),
            floats(s.channels * s.states),
            floats(s.batch * s.states * s.length),
            floats(s.batch * s.states * s.length),
            floats(s.channels)};
}

// As in a trained model: delta from 0.001 to 0.1, and a from -1 to -16: some states forget within a
// few steps, others carry over tiles.
SelectiveInputs decaying(const SelectiveShape& shape) {
    SelectiveInputs in = empty_inputs(shape);
    Random random(kSeed);
    for (auto* array : {&in.x, &in.b, &in.c, &in.d})
        for (float& value : *array)
            value = random.normal();
    for (float& delta : in.delta)
        delta = std::exp(random.uniform(std::log(0.001f), std::log(0.1f)));
    for (float& a : in.a)
        a = -std::exp(random.uniform(-4, 2.7f));
    return in;
}

// With a = 0 every factor is exp(0) = 1, so y is a prefix sum, exact in any order: no term may be
// lost, or counted twice.
SelectiveInputs whole_numbers(const SelectiveShape& shape) {
    SelectiveInputs in = empty_inputs(shape);
    Random random(kSeed);
    for (auto* array : {&in.x, &in.delta, &in.b, &in.c, &in.d})
        for (float& value : *array)
            value = static_cast<float>(random.integer(-2, 2));
    return in;
}

struct OnDevice {
    explicit OnDevice(const SelectiveInputs& in, std::size_t misaligned_by = 0)
        : shape(in.shape),
          x(std::span(in.x)),
          delta(std::span(in.delta)),
          a(std::span(in.a)),
          b(std::span(in.b)),
          c(std::span(in.c)),
          d(std::span(in.d)),
          y(in.x.size(), misaligned_by) {}

    SelectiveScan scan() {
        return {.shape = shape,
                .x = x.span(),
                .delta = delta.span(),
                .a = a.span(),
                .b = b.span(),
                .c = c.span(),
                .d = d.span(),
                .y = y.span()};
    }

    SelectiveShape shape;
    const DeviceBuffer<float> x, delta, a, b, c, d;
    GuardedBuffer<float> y;
};

class SelectiveScanTest : public course::DeviceTestWithParam<const SelectiveVersion*> {
  protected:
    std::vector<float> run(const SelectiveInputs& in, std::size_t misaligned_by = 0) {
        OnDevice device(in, misaligned_by);
        GetParam()->launcher(device.scan(), nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        EXPECT_EQ(device.y.damage(), "");
        return device.y.to_host();
    }

    void expect_within_bound(const SelectiveInputs& in, std::size_t misaligned_by = 0) {
        SCOPED_TRACE(text(in.shape));
        const auto expected = day16::selective_scan_on_cpu(in);
        const auto result =
            course::verify(run(in, misaligned_by), expected.values, {.factor = day16::kSelectiveFactor},
                           expected.magnitudes, in.shape.length);
        EXPECT_TRUE(result.ok()) << result.message();
    }

    void expect_exact(const SelectiveInputs& in) {
        SCOPED_TRACE(text(in.shape));
        const auto expected = day16::selective_scan_on_cpu(in);
        const auto result = course::verify(run(in), expected.values, {.factor = 0}, {}, in.shape.length);
        EXPECT_TRUE(result.ok()) << result.message();
    }
};

// Around a warp, the tiles of 256, 1,024 and 2,048 steps, and three tiles; rows that are aligned
// and rows that are not.
constexpr std::size_t kLengths[] = {0,    1,    31,   32,   33,   255,  256,  257,
                                    1023, 1024, 1025, 2047, 2048, 2049, 4099, 6148};

TEST_P(SelectiveScanTest, Lengths) {
    for (const std::size_t length : kLengths)
        expect_within_bound(decaying({.batch = 1, .channels = 2, .length = length, .states = 3}));
}

TEST_P(SelectiveScanTest, WholeNumbersAreExact) {
    for (const std::size_t length : kLengths)
        expect_exact(whole_numbers({.batch = 1, .channels = 1, .length = length, .states = 2}));
}

// Groups of four channels, and of sixteen states; blocks that loop over the states.
TEST_P(SelectiveScanTest, BatchesChannelsAndStates) {
    for (const SelectiveShape& shape : {SelectiveShape{1, 1, 37, 1},
                                        {3, 4, 37, 16},
                                        {2, 5, 40, 17},
                                        {5, 3, 29, 15},
                                        {1, 7, 300, 33},
                                        {2, 66, 5, 2},
                                        {1, 2, 3, 300},
                                        {0, 3, 5, 2},
                                        {3, 0, 5, 2}}) {
        expect_within_bound(decaying(shape));
        expect_exact(whole_numbers(shape));
    }
}

TEST_P(SelectiveScanTest, MisalignedOutput) {
    expect_within_bound(decaying({.batch = 2, .channels = 3, .length = 1028, .states = 2}), 1);
}

// exp(delta a) = 0: only the current step counts. And a factor above 1: sums grow.
TEST_P(SelectiveScanTest, FactorsOfZeroAndAboveOne) {
    SelectiveInputs in = decaying({.batch = 1, .channels = 3, .length = 2100, .states = 2});
    for (float& a : in.a)
        a = -1e6f;
    expect_within_bound(in);
    for (float& a : in.a)
        a = 0.05f;
    expect_within_bound(in);
}

// It reaches its own channel from its own time step on, and nothing else.
TEST_P(SelectiveScanTest, NanStaysInItsChannel) {
    constexpr std::size_t kLength = 2500;
    SelectiveInputs in = decaying({.batch = 2, .channels = 5, .length = kLength, .states = 2});
    const std::vector<float> without = run(in);
    for (const std::size_t t : {0, 700, 2047, 2499}) {
        SelectiveInputs with = in;
        with.x[6 * kLength + t] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<float> got = run(with);
        for (std::size_t i = 0; i < got.size(); ++i) {
            const bool is_reached = i / kLength == 6 && i % kLength >= t;
            if (is_reached) {
                ASSERT_TRUE(std::isnan(got[i])) << "row " << i / kLength << ", step " << i % kLength;
            } else {
                ASSERT_EQ(got[i], without[i]) << "row " << i / kLength << ", step " << i % kLength;
            }
        }
    }
}

TEST_P(SelectiveScanTest, IsOneKernelOnTheGivenStream) {
    OnDevice device(decaying({.batch = 1, .channels = 5, .length = 33, .states = 2}));
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.scan(), stream); });
    EXPECT_EQ(work.nodes(), 1u);
}

TEST_P(SelectiveScanTest, RefusesBadArguments) {
    const DeviceBuffer<float> zeros = course::zeros<float>(100);
    DeviceBuffer<float> out = course::zeros<float>(100);
    // 2 x 3 x 4, 5 states
    const SelectiveScan right{.shape = {2, 3, 4, 5},
                              .x = zeros.span().subspan(0, 24),
                              .delta = zeros.span().subspan(0, 24),
                              .a = zeros.span().subspan(0, 15),
                              .b = zeros.span().subspan(0, 40),
                              .c = zeros.span().subspan(0, 40),
                              .d = zeros.span().subspan(0, 3),
                              .y = out.span().subspan(0, 24)};
    const auto message = [&](auto change) {
        SelectiveScan scan = right;
        change(scan);
        return course::refusal([&] { GetParam()->launcher(scan, nullptr); });
    };
    EXPECT_EQ(message([](SelectiveScan&) {}), "");
    EXPECT_EQ(message([](SelectiveScan& s) { s.shape.states = 0; }),
              "selective_scan: states is 0; expected 1 to 1024");
    EXPECT_EQ(message([](SelectiveScan& s) { s.shape.states = 1025; }),
              "selective_scan: states is 1025; expected 1 to 1024");
    EXPECT_EQ(message([](SelectiveScan& s) { s.x = s.x.subspan(0, 23); }),
              "selective_scan: x has 23 elements; expected batch x channels x length = 24");
    EXPECT_EQ(message([](SelectiveScan& s) { s.delta = s.delta.subspan(0, 23); }),
              "selective_scan: delta has 23 elements; expected batch x channels x length = 24");
    EXPECT_EQ(message([](SelectiveScan& s) { s.a = s.a.subspan(0, 14); }),
              "selective_scan: a has 14 elements; expected channels x states = 15");
    EXPECT_EQ(message([](SelectiveScan& s) { s.b = s.b.subspan(0, 39); }),
              "selective_scan: b has 39 elements; expected batch x states x length = 40");
    EXPECT_EQ(message([](SelectiveScan& s) { s.c = s.c.subspan(0, 39); }),
              "selective_scan: c has 39 elements; expected batch x states x length = 40");
    EXPECT_EQ(message([](SelectiveScan& s) { s.d = s.d.subspan(0, 2); }),
              "selective_scan: d has 2 elements; expected channels = 3");
    EXPECT_EQ(message([](SelectiveScan& s) { s.y = s.y.subspan(0, 23); }),
              "selective_scan: y has 23 elements; expected batch x channels x length = 24");
    EXPECT_EQ(message([&](SelectiveScan& s) { s.b = out.span().subspan(20, 40); }),
              "selective_scan: y overlaps b; expected memory apart");
}

INSTANTIATE_TEST_SUITE_P(Versions, SelectiveScanTest, course::each_of(day16::selective_versions()),
                         course::VersionName());

}  // namespace
