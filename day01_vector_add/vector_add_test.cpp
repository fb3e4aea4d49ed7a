// Every version against the reference, value by value: one addition has one correctly rounded
// result.
#include "vector_add.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;

constexpr std::uint64_t kSeed = 1;

std::vector<float> expected_sum(const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> c(a.size());
    day01::add_on_cpu(a, b, c);
    return c;
}

// Equal bits are expected: an error bound of 0.
course::VerifyResult compare(const GuardedBuffer<float>& c, const std::vector<float>& expected) {
    const std::vector<double> exact(expected.begin(), expected.end());
    course::VerifyResult result = course::verify(c.to_host(), exact, {.factor = 0});
    result.damage = c.damage();
    return result;
}

class VersionTest : public course::DeviceTestWithParam<const day01::VectorAdd*> {
  protected:
    void launch(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) const {
        GetParam()->launcher(a, b, c, nullptr);
    }

    // Adds n elements that begin at the given offsets (in elements) from well-aligned addresses.
    course::VerifyResult add(std::size_t n, DataPattern pattern, std::size_t a_offset = 0,
                             std::size_t b_offset = 0, std::size_t c_offset = 0) const {
        const std::vector<float> a = course::make_data<float>(n + a_offset, pattern, kSeed);
        const std::vector<float> b = course::make_data<float>(n + b_offset, pattern, kSeed + 1);
        const DeviceBuffer<float> a_device{std::span(a)};
        const DeviceBuffer<float> b_device{std::span(b)};
        GuardedBuffer<float> c(n, c_offset);
        launch(a_device.span().subspan(a_offset, n), b_device.span().subspan(b_offset, n), c.span());
        return compare(c, expected_sum({a.begin() + static_cast<std::ptrdiff_t>(a_offset), a.end()},
                                       {b.begin() + static_cast<std::ptrdiff_t>(b_offset), b.end()}));
    }
};

INSTANTIATE_TEST_SUITE_P(DayOne, VersionTest, course::each_of(day01::versions()), course::VersionName());

TEST_P(VersionTest, AllSizesAndPatterns) {
    const auto expect_sums = [&](std::size_t n, DataPattern pattern) {
        const course::VerifyResult result = add(n, pattern);
        EXPECT_TRUE(result.ok()) << "n = " << n << ", " << course::name(pattern) << ": " << result.message();
    };
    // Around a warp, a block and a block of float4s; tails of one, two and three elements.
    for (const std::size_t n :
         {0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 255, 256, 257, 1023, 1024, 1025, 1027}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kWithNan, DataPattern::kWithInf})
            expect_sums(n, pattern);
    }
    expect_sums(1000003, DataPattern::kSignedUniform);
}

TEST_P(VersionTest, RandomSizes) {
    course::Random random(20260101);
    SCOPED_TRACE("course::Random seed 20260101");
    for (int round = 0; round < 20; ++round) {
        const std::size_t n = random.below(100000);
        const course::VerifyResult result = add(n, DataPattern::kSignedUniform);
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

TEST_P(VersionTest, SubRangesWithAnyAlignment) {
    for (std::size_t a = 0; a < 4; ++a) {
        for (std::size_t b = 0; b < 4; ++b) {
            for (std::size_t c = 0; c < 4; ++c) {
                const course::VerifyResult result = add(1029, DataPattern::kSignedUniform, a, b, c);
                EXPECT_TRUE(result.ok())
                    << "offsets " << a << ", " << b << ", " << c << ": " << result.message();
            }
        }
    }
}

TEST_P(VersionTest, ResultMayReplaceAnInput) {
    const std::vector<float> a = course::make_data<float>(1027, DataPattern::kSignedUniform, kSeed);
    const std::vector<float> b = course::make_data<float>(1027, DataPattern::kSignedUniform, kSeed + 1);
    for (const bool replace_a : {true, false}) {
        GuardedBuffer<float> c(a.size());
        c.copy_from(replace_a ? a : b);
        const DeviceBuffer<float> other{std::span(replace_a ? b : a)};
        if (replace_a) {
            launch(c.span(), other.span(), c.span());
        } else {
            launch(other.span(), c.span(), c.span());
        }
        const course::VerifyResult result = compare(c, expected_sum(a, b));
        EXPECT_TRUE(result.ok()) << (replace_a ? "c is a: " : "c is b: ") << result.message() << '\n'
                                 << "Does a thread add an element that another one has added already?";
    }
    GuardedBuffer<float> all_three(a.size());
    all_three.copy_from(a);
    launch(all_three.span(), all_three.span(), all_three.span());
    const course::VerifyResult result = compare(all_three, expected_sum(a, a));
    EXPECT_TRUE(result.ok()) << "c is a, and so is b: " << result.message();
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    const std::vector<float> a = course::make_data<float>(1 << 20, DataPattern::kSignedUniform, kSeed);
    const DeviceBuffer<float> a_device{std::span(a)};
    GuardedBuffer<float> c(a.size());
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(a_device.span(), a_device.span(), c.span(), stream);
    });
    EXPECT_EQ(work.nodes(), 1U) << "launches on the stream that was given: expected 1, got " << work.nodes();
}

// The same addresses hold other data the second time.
TEST_P(VersionTest, AddsAnewWhenTheDataChange) {
    constexpr std::size_t kElements = 1029;
    GuardedBuffer<float> a(kElements);
    GuardedBuffer<float> c(kElements);
    for (const std::uint64_t seed : {kSeed, kSeed + 1}) {
        const std::vector<float> data =
            course::make_data<float>(kElements, DataPattern::kSignedUniform, seed);
        a.copy_from(data);
        launch(a.span(), a.span(), c.span());
        const course::VerifyResult result = compare(c, expected_sum(data, data));
        EXPECT_TRUE(result.ok()) << (seed == kSeed ? "" : "the second time: ") << result.message();
    }
}

// What a graph does when it is launched, the host cannot have computed before.
TEST_P(VersionTest, AddsWhenItsGraphIsLaunched) {
    const std::vector<float> a = course::make_data<float>(1029, DataPattern::kSignedUniform, kSeed);
    const DeviceBuffer<float> a_device{std::span(a)};
    GuardedBuffer<float> c(a.size());
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(a_device.span(), a_device.span(), c.span(), stream);
    });
    work.run();
    const course::VerifyResult result = compare(c, expected_sum(a, a));
    EXPECT_TRUE(result.ok()) << result.message();
}

// A loop over the grid needs no more blocks than run at the same time. The kernel takes few
// registers: threads are the limit.
TEST(GridStride, StartsNoMoreBlocksThanTheDeviceHolds) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const auto blocks = [](std::size_t n) {
        const DeviceBuffer<float> a = course::zeros<float>(n);
        DeviceBuffer<float> c(n);
        const course::CapturedWork work([&](cudaStream_t stream) {
            course::find_version(day01::versions(), "grid_stride")
                .launcher(a.span(), a.span(), c.span(), stream);
        });
        EXPECT_EQ(work.nodes(), 1U) << "launches on the stream that was given: expected 1, got "
                                    << work.nodes() << ". Is `stream` the fourth argument in <<<...>>>?";
        return work.grid().x;
    };
    cudaDeviceProp device{};
    CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
    const auto most_at_once =
        static_cast<unsigned>(device.multiProcessorCount * (device.maxThreadsPerMultiProcessor / 256));
    const unsigned blocks_of_grid = blocks(most_at_once * 1024UL);
    if (HasFailure()) return;
    EXPECT_LE(blocks_of_grid, most_at_once)
        << "blocks for " << most_at_once * 1024UL << " elements; at the same time the device holds "
        << most_at_once << " blocks of 256 threads";
    EXPECT_EQ(blocks(257), 2U) << "blocks for 257 elements; two blocks of 256 threads are enough";
}

TEST_P(VersionTest, NothingToAddIsNoLaunch) {
    const DeviceBuffer<float> nothing(0);
    DeviceBuffer<float> result(0);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(nothing.span(), nothing.span(), result.span(), stream);
    });
    EXPECT_EQ(work.nodes(), 0U) << "launches for vectors of no elements: expected 0, got " << work.nodes();
}

TEST_P(VersionTest, RefusesDifferentLengths) {
    DeviceBuffer<float> buffer(8);
    const DeviceSpan<float> four = buffer.span().subspan(0, 4);
    const DeviceSpan<float> three = buffer.span().subspan(4, 3);
    EXPECT_THROW(launch(three, four, four), std::invalid_argument);
    EXPECT_THROW(launch(four, three, four), std::invalid_argument);
    EXPECT_THROW(launch(four, four, three), std::invalid_argument);
    try {
        launch(four, four, three);
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "vector_add: a, b and c have 4, 4 and 3 elements; expected the same number");
    }
}

TEST_P(VersionTest, RefusesAResultThatOverlapsAnInputHalfWay) {
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(16, 1.0f))};
    const DeviceSpan<float> all = buffer.span();
    EXPECT_THROW(launch(all.subspan(0, 8), all.subspan(0, 8), all.subspan(1, 8)), std::invalid_argument);
    EXPECT_THROW(launch(all.subspan(0, 8), all.subspan(7, 8), all.subspan(0, 8)), std::invalid_argument);
    EXPECT_NO_THROW(launch(all.subspan(0, 8), all.subspan(0, 8), all.subspan(8, 8)));
}

// More elements than 32 bits can count: index arithmetic in int or unsigned would wrap. One array
// of 17 GB is both inputs and the result. It is filled on the device; windows of known data at the
// interesting places are compared.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(n * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> all(n);
    CUDA_CHECK(cudaMemset(all.data(), 0, all.bytes()));

    constexpr std::size_t kWindow = 1024;
    const std::size_t places[] = {0, (std::size_t{1} << 29) - 512, (std::size_t{1} << 31) - 512, n - kWindow};
    const auto window_at = [](std::size_t place) {
        return course::make_data<float>(kWindow, DataPattern::kSignedUniform, place);
    };
    for (const std::size_t place : places)
        CUDA_CHECK(cudaMemcpy(all.data() + place, window_at(place).data(), kWindow * sizeof(float),
                              cudaMemcpyHostToDevice));
    launch(all.span(), all.span(), all.span());
    for (const std::size_t place : places) {
        std::vector<float> got(kWindow);
        CUDA_CHECK(
            cudaMemcpy(got.data(), all.data() + place, kWindow * sizeof(float), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, expected_sum(window_at(place), window_at(place))) << "from element " << place;
    }
}

// The same on the CPU, where only the blocks at the beginning, in the middle (an int ends at
// element 2^31) and at the end run.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t n = (std::size_t{1} << 32) + 5;
    const course::LargeArray<float> a(n);
    const course::LargeArray<float> b(n);
    const course::LargeArray<float> c(n);
    for (std::size_t place = 0; place < course::kLargePlaces.size(); ++place) {
        const std::vector<float> data =
            course::make_data<float>(a.part(place).size(), DataPattern::kSignedUniform, place);
        std::ranges::copy(data, a.part(place).begin());
        std::ranges::copy(data, b.part(place).begin());
    }
    course::run_few_blocks([&] { launch(a.span(), b.span(), c.span()); });
    if (HasFatalFailure()) return;
    // Blocks have at least 256 elements, and four of them run on each side.
    for (const std::size_t begin : {std::size_t{0}, n / 2 - 512, n / 2, n - 512}) {
        for (std::size_t i = begin; i < begin + 512; ++i)
            ASSERT_EQ(c[i], a[i] + b[i]) << course::large_element(i, n);
    }
}

TEST(AddOnCpu, AddsAsOneRoundingDoes) {
    const std::vector<float> a = course::make_data<float>(1027, DataPattern::kHugeNextToTiny, kSeed);
    const std::vector<float> b = course::make_data<float>(1027, DataPattern::kSignedUniform, kSeed + 1);
    const std::vector<float> c = expected_sum(a, b);
    for (std::size_t i = 0; i < c.size(); ++i) {
        ASSERT_EQ(c[i], static_cast<float>(static_cast<double>(a[i]) + static_cast<double>(b[i])))
            << "element " << i;
    }
}

TEST(AddOnCpu, RefusesDifferentLengths) {
    std::vector<float> three(3);
    std::vector<float> four(4);
    EXPECT_THROW(day01::add_on_cpu(three, four, four), std::invalid_argument);
}

TEST(Versions, AreFoundByNameAndOthersSuggested) {
    EXPECT_EQ(course::find_version(day01::versions(), "float4").name, "float4");
    EXPECT_THROW(course::find_version(day01::versions(), "flota4"), std::invalid_argument);
}

}  // namespace
