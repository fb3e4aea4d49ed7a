// Every version against the reference, on shapes around the tiles' edges, with aligned and
// unaligned rows.
#include "async_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "common/test/matmul_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::GuardedMatrix;
using day38::Activity;
using day38::Shape;
using day38::Stamp;

constexpr std::uint64_t kSeed = 38;

// The layout of a matrix: padding between rows, and the offset of its first element from a 256-byte
// boundary.
struct Layout {
    std::size_t padding = 0;
    std::size_t misaligned_by = 0;
};

std::string text_of(Shape shape, Layout layout) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + " x " +
           std::to_string(shape.depth) + ", padding " + std::to_string(layout.padding) + ", misaligned by " +
           std::to_string(layout.misaligned_by);
}

class VersionTest : public course::DeviceTestWithParam<const day38::Pipeline*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day38::Pipeline*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // `launch` in place of the version's own; each of the matrices has a leading dimension of its
    // own.
    template <class Launch>
    static course::VerifyResult multiply(Shape shape, const std::vector<float>& a,
                                         const std::vector<float>& b, const course::Bound& bound,
                                         Layout layout, Launch launch) {
        const auto [rows, cols, depth] = shape;
        const auto [padding, misaligned_by] = layout;
        GuardedMatrix<float> a_device(a, rows, depth, padding, misaligned_by);
        GuardedMatrix<float> b_device(b, depth, cols, 2 * padding, misaligned_by);
        GuardedMatrix<float> c_device(rows, cols, 3 * padding, misaligned_by);
        launch(a_device.view(), b_device.view(), c_device.view());

        std::vector<double> product(rows * cols);
        std::vector<double> magnitude(rows * cols);
        day38::multiply_on_cpu(shape, a, b, product, magnitude);
        for (double& size : magnitude)  // verify() expects finite magnitudes
            size = std::isfinite(size) ? size : 0;
        course::VerifyResult result = course::verify(c_device.packed(), product, bound, magnitude, cols);
        result.damage = c_device.damage();
        return result;
    }

    static void launch_version(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
        GetParam()->launcher.launch(a, b, c, nullptr);
    }

    static void expect_right(Shape shape, DataPattern pattern,
                             course::Growth growth = course::Growth::kLinear) {
        const auto a = course::make_data<float>(shape.rows * shape.depth, pattern, kSeed);
        const auto b = course::make_data<float>(shape.depth * shape.cols, pattern, kSeed + 1);
        const course::Bound bound{.terms = std::max<std::size_t>(shape.depth, 1), .growth = growth};
        const course::VerifyResult result = multiply(shape, a, b, bound, {}, launch_version);
        EXPECT_TRUE(result.ok()) << text_of(shape, {}) << ", " << course::name(pattern) << ": "
                                 << result.message();
    }

    // Small integers: every product and every sum is exact in single precision, so only equal is
    // right.
    static std::vector<float> integers(std::size_t count, std::uint64_t seed) {
        course::Random random(seed);
        std::vector<float> values(count);
        for (float& value : values)
            value = static_cast<float>(random.integer(-8, 8));
        return values;
    }
    template <class Launch = decltype(&launch_version)>
    static void expect_exact(Shape shape, Layout layout = {}, Launch launch = launch_version) {
        const course::VerifyResult result =
            multiply(shape, integers(shape.rows * shape.depth, kSeed),
                     integers(shape.depth * shape.cols, kSeed + 1), {.factor = 0}, layout, launch);
        EXPECT_TRUE(result.ok()) << text_of(shape, layout) << ", integers: " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyEight, VersionTest, course::each_of(day38::versions()),
                         course::VersionName());

// Extents around the tiles of 16, 64, 112 and 128, one direction at a time; multiples of 4 and
// others, so both kinds of copies run.
TEST_P(VersionTest, EveryExtentAroundTheTiles) {
    for (const std::size_t extent :
         {0, 1, 3, 4, 15, 16, 17, 31, 32, 33, 63, 64, 65, 111, 112, 113, 127, 128, 129, 257}) {
        expect_exact({extent, 8, 20});
        expect_exact({extent, 7, 19});
        expect_exact({8, extent, 20});
        expect_exact({8, 4, extent});
        expect_exact({5, 7, extent});
    }
}

// Fewer tiles than stages, as many, more, and several rounds of the ring, with tiles of depth 16
// and 32: every way a pipeline can begin and end.
TEST_P(VersionTest, EveryNumberOfTiles) {
    for (std::size_t tiles = 1; tiles <= 20; ++tiles) {
        expect_exact({4, 4, 16 * tiles});
        expect_exact({4, 4, 16 * tiles - 12});
        expect_exact({3, 5, 16 * tiles - 15});
    }
}

TEST_P(VersionTest, ShapesAndPatterns) {
    for (const Shape shape : {Shape{1, 1, 1}, Shape{33, 31, 65}, Shape{132, 260, 96}, Shape{131, 1, 67}}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf}) {
            expect_right(shape, pattern);
        }
    }
}

// Padding of 4 keeps rows aligned, as long as the first one is.
TEST_P(VersionTest, PaddedAndMisalignedRows) {
    for (const std::size_t padding : {0, 1, 2, 4}) {
        for (const std::size_t misaligned_by : {0, 1, 2, 4}) {
            expect_exact({36, 132, 68}, {padding, misaligned_by});
            expect_exact({113, 37, 35}, {padding, misaligned_by});
        }
    }
}

TEST_P(VersionTest, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20260238;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    for (int round = 0; round < 16; ++round) {
        const std::size_t unit = round % 2 == 0 ? 4 : 1;
        expect_exact({unit * random.below(300 / unit), unit * random.below(300 / unit),
                      unit * random.below(150 / unit)},
                     {unit * random.below(3), unit * random.below(3)});
    }
}

// A of more elements than 32 bits count, on the CPU, where only the blocks of its last rows run.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kRows = std::size_t{1} << 20;
    constexpr std::size_t kDepth = 4100;
    constexpr std::size_t kCols = 4;
    const std::vector<double> end = {1};
    const course::LargeArray<float> a(kRows * kDepth, 2048 * kDepth, end);
    const std::vector<float> last_row = integers(kDepth, kSeed);
    std::ranges::copy(last_row, &a[(kRows - 1) * kDepth]);
    const std::vector<float> b = integers(kDepth * kCols, kSeed + 1);
    const DeviceBuffer<float> b_device{std::span(b)};
    DeviceBuffer<float> c(kRows * kCols);
    course::run_few_blocks(
        [&] {
            launch_version(DeviceMatrix<const float>(a.span(), kRows, kDepth), b_device.matrix(kDepth, kCols),
                           c.matrix(kRows, kCols));
        },
        end);
    if (HasFatalFailure()) return;
    std::vector<float> got(kCols);
    CUDA_CHECK(cudaMemcpy(got.data(), c.data() + (kRows - 1) * kCols, kCols * sizeof(float),
                          cudaMemcpyDeviceToHost));
    std::vector<double> expected(kCols);
    std::vector<double> magnitude(kCols);
    day38::multiply_on_cpu({1, kCols, kDepth}, last_row, b, expected, magnitude);
    const course::VerifyResult result = course::verify(got, expected, {.factor = 0});
    EXPECT_TRUE(result.ok()) << course::large_element((kRows - 1) * kDepth, kRows * kDepth) << "\n"
                             << result.message();
}

// The narrow bound: with the wide one a missing tile would pass.
TEST_P(VersionTest, ALongSum) {
    const std::size_t k = course::is_cpu_stand_in() ? 4000 : 20000;
    expect_right({3, 5, k + 11}, DataPattern::kSignedUniform, course::Growth::kSquareRoot);
    expect_exact({4, 8, k + 12});
}

// Several runs, as copies and multiply-adds meet in another order each time.
TEST_P(VersionTest, IsTheSameEveryTime) {
    for (int run = 0; run < 3; ++run)
        expect_exact({260, 260, 180});
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    const std::vector<float> ones(32 * 32, 1.0f);
    const DeviceBuffer<float> a{std::span(ones)};
    GuardedBuffer<float> c(ones.size());
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.launch(a.matrix(32, 32), a.matrix(32, 32), c.matrix(32, 32), stream);
    });
    EXPECT_TRUE(std::isnan(c.to_host()[0])) << "ran before the graph it was captured into";
    work.run();
    EXPECT_EQ(c.to_host(), std::vector<float>(ones.size(), 32.0f));
}

TEST_P(VersionTest, RefusesWhatDoesNotFit) {
    course::expect_misfits_refused(
        "async_pipeline", [](auto a, auto b, auto c) { GetParam()->launcher.launch(a, b, c, nullptr); });
}

TEST_P(VersionTest, MoreElementsThan31BitsCount) {
    course::expect_right_beyond_31_bits(
        [](auto a, auto b, auto c) { GetParam()->launcher.launch(a, b, c, nullptr); },
        [](std::span<const float> a, std::span<const float> b, auto product, auto magnitude) {
            day38::multiply_on_cpu({1, 3, a.size()}, a, b, product, magnitude);
        },
        course::Growth::kSquareRoot);
}

// ---- The timeline -------------------------------------------------------------------------------

class TimelineTest : public VersionTest {
  protected:
    static constexpr Shape kShape{132, 132, 100};  // more than a tile each way and several along K

    // The timeline of the product of kShape; the product is verified, too.
    static std::vector<Stamp> stamps(unsigned block, unsigned most) {
        std::vector<Stamp> found;
        expect_exact(kShape, {}, [&](auto a, auto b, auto c) {
            found = GetParam()->launcher.timeline(a, b, c, block, most);
        });
        return found;
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyEight, TimelineTest, course::each_of(day38::versions()),
                         course::VersionName());

TEST_P(TimelineTest, TellsWhatEachWarpDoes) {
    const auto warps = static_cast<unsigned>(GetParam()->launcher.resources().threads) / 32;
    // With a single stage, a block also waits until the tile is safe to overwrite.
    const unsigned waits_for_a_tile = GetParam()->name.starts_with("tiled") ? 2 : 1;
    for (const unsigned block : {0u, 1u}) {
        std::map<unsigned, std::vector<Stamp>> of_warp;
        for (const Stamp& stamp : stamps(block, 100))
            of_warp[stamp.warp].push_back(stamp);
        ASSERT_EQ(of_warp.size(), warps);
        EXPECT_EQ(of_warp.rbegin()->first, warps - 1);
        std::vector<unsigned> multiplied;
        unsigned copied_first_tile = 0;
        for (const auto& [warp, own] : of_warp) {
            EXPECT_TRUE(std::ranges::is_sorted(own, {}, &Stamp::time)) << "warp " << warp;
            EXPECT_EQ(own.back().activity, Activity::kEnd) << "warp " << warp;
            unsigned next = 0, copies = 0, waits = 0;
            for (const Stamp& stamp : own) {
                copies += stamp.activity == Activity::kCopy;
                waits += stamp.activity == Activity::kWait;
                if (stamp.activity == Activity::kMultiply) {
                    EXPECT_EQ(stamp.tile, next++) << "warp " << warp;
                }
                if (stamp.activity == Activity::kCopy && stamp.tile == 0) ++copied_first_tile;
            }
            const unsigned tiles = next != 0 ? next : copies;  // a producer only copies
            EXPECT_EQ(waits, tiles * waits_for_a_tile) << "waits of warp " << warp;
            if (next != 0) multiplied.push_back(next);
        }
        ASSERT_FALSE(multiplied.empty());
        EXPECT_TRUE(multiplied.front() == 7 || multiplied.front() == 4)
            << multiplied.front();  // 16 or 32 of K in each
        EXPECT_EQ(multiplied, std::vector<unsigned>(multiplied.size(), multiplied.front()));
        EXPECT_GT(copied_first_tile, 0u);
    }
}

TEST_P(TimelineTest, StopsWhereThereIsNoMoreRoom) {
    std::map<unsigned, unsigned> count;
    for (const Stamp& stamp : stamps(0, 5))
        ++count[stamp.warp];
    for (const auto& [warp, stamps_of_warp] : count)
        EXPECT_EQ(stamps_of_warp, 5u) << "warp " << warp;
    EXPECT_TRUE(stamps(0, 0).empty());
}

TEST_P(TimelineTest, OfABlockThatDoesNotExistIsEmpty) {
    EXPECT_TRUE(stamps(1000, 10).empty());
}

TEST_P(TimelineTest, TakesRowsOfWholePacksOnly) {
    course::DeviceBuffer<float> memory(64);
    const auto operand = std::as_const(memory).span().subspan(0, 9);
    const auto timeline = [&] {
        GetParam()->launcher.timeline(course::DeviceMatrix<const float>(operand, 3, 3),
                                      course::DeviceMatrix<const float>(operand, 3, 3),
                                      course::DeviceMatrix<float>(memory.span().subspan(16, 9), 3, 3), 0, 10);
    };
    EXPECT_EQ(
        course::refusal(timeline),
        "async_pipeline: A is 3 x 3, B is 3 x 3; expected, for a timeline, rows of whole float4 at multiples "
        "of 16 bytes");
}

TEST(Activities, HaveNames) {
    EXPECT_EQ(day38::name(Activity::kCopy), "copy");
    EXPECT_EQ(day38::name(Activity::kWait), "wait");
    EXPECT_EQ(day38::name(Activity::kMultiply), "multiply");
    EXPECT_EQ(day38::name(Activity::kEnd), "end");
}

// ---- The reference ------------------------------------------------------------------------------

TEST(MultiplyOnCpu, AProductWorkedOutByHand) {
    const std::vector<float> a = {1, 2, 3, 4, 5, 6};     // 2 x 3
    const std::vector<float> b = {1, -2, 3, -4, 5, -6};  // 3 x 2
    std::vector<double> product(4);
    std::vector<double> magnitude(4);
    day38::multiply_on_cpu({2, 2, 3}, a, b, product, magnitude);
    EXPECT_EQ(product, (std::vector<double>{22, -28, 49, -64}));
    EXPECT_EQ(magnitude, (std::vector<double>{22, 28, 49, 64}));
}

}  // namespace
