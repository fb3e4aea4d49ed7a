// Every tile that the dispatcher may choose, in both ways, and its choice.
#include "beyond/tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "test_problem.hpp"

namespace {

using gemm::Shape;
using gemm::TileKernels;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::Problem;

constexpr std::uint64_t kSeed = 14;

std::string name_of(const testing::TestParamInfo<const TileKernels*>& info) {
    return std::string(info.param->name);
}

class TileTest : public course::DeviceTestWithParam<const TileKernels*> {
  protected:
    // `blocks` share the work; 0: every tile has a block of its own.
    void expect_exact(const Problem& problem, unsigned blocks) const {
        const auto [m, n, k] = problem.shape;
        const auto launch = [&](const gemm::Sgemm& gemm) {
            if (blocks == 0) {
                GetParam()->whole.launch(gemm, nullptr);
            } else {
                GetParam()->launch_shared_on(blocks, gemm, nullptr);
            }
        };
        const auto c = problem.beta == 0 ? std::vector<float>(m * n, kNan) : integers(m * n, kSeed);
        const course::VerifyResult result = gemm::test::multiply_twice(
            launch, blocks == 0 ? gemm::ScratchSize{} : GetParam()->shared.scratch(problem.shape), problem,
            integers(m * k, kSeed + 1), integers(k * n, kSeed + 2), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ", blocks " << blocks << ": " << result.message();
    }

    // In tiles, and a little more or less.
    Shape shape_of(int down, int across, int steps, int more) const {
        const auto extent = [&](int tiles, int size) {
            return static_cast<std::size_t>(tiles * size + more);
        };
        return {extent(down, GetParam()->bm), extent(across, GetParam()->bn), extent(steps, GetParam()->bk)};
    }
};

INSTANTIATE_TEST_SUITE_P(Ladder, TileTest, course::each_of(gemm::tiles()), name_of);

TEST_P(TileTest, WholeAndShared) {
    for (const unsigned blocks : {0u, 1u, 2u, 3u, 7u, 1000000u}) {
        expect_exact({.shape = shape_of(1, 1, 5, 0)}, blocks);
        expect_exact({.shape = shape_of(2, 2, 3, -1), .alpha = -0.5f, .beta = 1, .padding = 4}, blocks);
        expect_exact({.shape = shape_of(1, 2, 4, 1), .beta = -0.5f, .padding = 1, .misaligned_by = 1},
                     blocks);
    }
}

// More blocks than steps, one step, none.
TEST_P(TileTest, FewSteps) {
    for (const unsigned blocks : {0u, 1u, 5u}) {
        for (const std::size_t k : {0, 1, 3})
            expect_exact({.shape = {33, 65, k}, .beta = 1}, blocks);
    }
}

// A sum that every block has a share of.
TEST_P(TileTest, ManyOwnersOfOneTile) {
    const std::size_t k = course::is_cpu_stand_in() ? 1003 : 4003;
    for (const unsigned blocks : {2u, 4u, 1000000u}) {
        expect_exact({.shape = {5, 4, k}, .beta = 1}, blocks);
        expect_exact({.shape = shape_of(1, 1, 63, 0)}, blocks);
        expect_exact({.shape = shape_of(1, 1, 63, -1), .beta = 1, .padding = 1}, blocks);
    }
    // More blocks than the smallest tile has float4: a large GPU runs that many at once, the CPU
    // does not.
    if (!course::is_cpu_stand_in()) expect_exact({.shape = {32, 32, 20003}}, 1000000u);
}

TEST_P(TileTest, RefusesTooLittleScratch) {
    const Problem problem{.shape = {33, 65, 64}};
    const auto launch = [&](const gemm::Sgemm& gemm) { GetParam()->launch_shared_on(2, gemm, nullptr); };
    EXPECT_THROW(gemm::test::multiply_twice(launch, {}, problem, integers(33 * 64, 1), integers(64 * 65, 2),
                                            integers(33 * 65, 3), {}),
                 std::invalid_argument);
}

// GPUs as their properties tell: SMs, compute capability, clock; warps, blocks, registers and
// shared memory of an SM, of a block, and the system's.
gemm::Gpu hopper(unsigned multiprocessors) {
    return {multiprocessors, 90, 1'980'000, {64, 32, 65536, 228 << 10, 227 << 10, 1 << 10}};
}
const gemm::Gpu kH200 = hopper(132);
const gemm::Gpu kTuring = {68, 75, 1'545'000, {32, 16, 65536, 64 << 10, 64 << 10, 0, 256}};
const gemm::Gpu kSmallAmpere = {24, 86, 1'740'000, {48, 16, 65536, 100 << 10, 99 << 10, 1 << 10}};
const gemm::Gpu kAda = {128, 89, 2'520'000, {48, 24, 65536, 100 << 10, 99 << 10, 1 << 10}};
const gemm::Gpu kBlackwell = {148, 100, 1'965'000, {64, 32, 65536, 228 << 10, 227 << 10, 1 << 10}};

TEST(Choose, TakesAnyShape) {
    for (const std::size_t m : {1, 33, 4096, 1 << 20}) {
        for (const std::size_t n : {1, 129, 4096}) {
            for (const std::size_t k : {0, 1, 4096, 1 << 24}) {
                for (const unsigned multiprocessors : {1u, 2u, 132u, 1000u}) {
                    for (const bool aligned : {false, true}) {
                        const gemm::Choice choice = gemm::choose({m, n, k}, aligned, hopper(multiprocessors));
                        ASSERT_NE(choice.tile, nullptr);
                        ASSERT_TRUE(std::isfinite(choice.microseconds) && choice.microseconds > 0)
                            << m << " x " << n << " x " << k << " on " << multiprocessors
                            << " multiprocessors: expected a time greater than 0, got " << choice.microseconds
                            << " microseconds";
                        EXPECT_LE(choice.shared_by,
                                  static_cast<unsigned>(choice.tile->most_blocks) * multiprocessors);
                    }
                }
            }
        }
    }
}

// On the GPU that the table was measured on: large squares take the largest tile, small ones a
// small one, and one tile with a long sum is shared.
TEST(Choose, SuitsTheShape) {
    EXPECT_EQ(gemm::choose({8192, 8192, 8192}, true, kH200).tile->name, "128x256x8");
    EXPECT_EQ(gemm::choose({128, 128, 128}, true, kH200).tile->name, "32x32x16");
    EXPECT_GT(gemm::choose({32, 32, 1 << 20}, true, kH200).shared_by, 0u);
}

// What was measured there. A rule for other GPUs must not change it.
TEST(Choose, IsTheSameOnTheGpuOfTheTable) {
    struct Expected {
        Shape shape;
        bool aligned;
        const char* tile;
        unsigned shared_by;
    };
    static constexpr Expected kExpected[] = {
        {{128, 128, 128}, true, "32x32x16", 0},       {{512, 512, 512}, false, "32x32x16", 0},
        {{1024, 1024, 1024}, true, "32x128x16", 0},   {{1024, 1024, 1024}, false, "64x128x16", 0},
        {{1536, 1536, 1536}, true, "64x128x16", 264}, {{1536, 1536, 1536}, false, "64x128x16", 396},
        {{2047, 2049, 2051}, true, "64x128x16", 396}, {{2047, 2049, 2051}, false, "128x128x8", 264},
        {{2048, 2048, 2048}, true, "128x256x8", 0},   {{4096, 4096, 4096}, true, "128x256x8", 0},
        {{6000, 6000, 6000}, true, "128x256x8", 132}, {{6000, 6000, 6000}, false, "128x256x8", 0},
        {{8192, 8192, 8192}, false, "128x256x8", 0},  {{96, 4096, 4096}, true, "32x128x16", 396},
        {{4096, 96, 4096}, true, "64x128x16", 264},   {{4096, 96, 4096}, false, "128x32x16", 528},
        {{64, 64, 65536}, true, "32x32x16", 264},     {{32, 32, 1 << 20}, false, "32x32x16", 528},
        {{20000, 40, 300}, true, "128x32x16", 396},   {{40, 20000, 300}, false, "32x128x16", 0},
        {{3072, 3072, 64}, true, "32x128x16", 0},     {{3072, 3072, 64}, false, "128x128x8", 0},
        {{4096, 4096, 16}, true, "32x128x16", 0},     {{1, 33, 5}, true, "32x32x16", 0},
    };
    for (const auto& [shape, aligned, tile, shared_by] : kExpected) {
        const gemm::Choice choice = gemm::choose(shape, aligned, kH200);
        const std::string problem = std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                                    std::to_string(shape.k) + (aligned ? ", aligned" : "");
        EXPECT_EQ(choice.tile->name, tile) << problem;
        EXPECT_EQ(choice.shared_by, shared_by) << problem;
    }
}

// Blocks that an SM runs, of 128 x 256 x 8, 128 x 128 x 8, 64 x 128 x 16, 64 x 64 x 16,
// 128 x 32 x 16, 32 x 128 x 16, 32 x 32 x 16: shared memory limits them on consumer cards.
TEST(Choose, CountsTheBlocksThatAnSmRuns) {
    const auto blocks_on = [](const gemm::Gpu& gpu) {
        std::vector<int> blocks;
        for (const TileKernels& tile : gemm::tiles())
            blocks.push_back(gemm::resident_blocks(tile, gpu));
        return blocks;
    };
    EXPECT_EQ(blocks_on(kH200), (std::vector{1, 2, 3, 6, 4, 4, 8}));
    EXPECT_EQ(blocks_on(kBlackwell), (std::vector{1, 2, 3, 6, 4, 4, 8}));
    EXPECT_EQ(blocks_on(kAda), (std::vector{1, 2, 2, 3, 3, 3, 5}));
    EXPECT_EQ(blocks_on(kSmallAmpere), (std::vector{1, 2, 2, 3, 3, 3, 5}));
    EXPECT_EQ(blocks_on(kTuring), (std::vector{1, 1, 1, 2, 2, 2, 3}));
}

// Launches that the GPU accepts, and times that its FP32 lanes allow.
TEST(Choose, IsSaneOnOtherGpus) {
    for (const gemm::Gpu& gpu : {kTuring, kSmallAmpere, kAda, kBlackwell}) {
        for (const std::size_t m : {1, 33, 512, 2047, 8192}) {
            for (const std::size_t n : {1, 96, 1024, 8192}) {
                for (const std::size_t k : {0, 1, 300, 4096, 1 << 20}) {
                    for (const bool aligned : {false, true}) {
                        const gemm::Choice choice = gemm::choose({m, n, k}, aligned, gpu);
                        const auto resident = static_cast<unsigned>(gemm::resident_blocks(*choice.tile, gpu));
                        EXPECT_GE(resident, 1u);
                        EXPECT_LE(choice.shared_by, resident * gpu.multiprocessors);
                        const double lanes = gpu.capability == 75 ? 64 : 128;
                        const double least = static_cast<double>(m * n) * static_cast<double>(k) /
                                             (lanes * gpu.multiprocessors * gpu.clock_khz / 1000.0);
                        EXPECT_GE(choice.microseconds, least)
                            << m << " x " << n << " x " << k << " on compute capability " << gpu.capability;
                    }
                }
            }
        }
        EXPECT_EQ(gemm::choose({8192, 8192, 8192}, true, gpu).tile->name, "128x256x8");
        EXPECT_EQ(gemm::choose({17, 17, 17}, true, gpu).tile->name, "32x32x16");
        EXPECT_GT(gemm::choose({32, 32, 1 << 20}, true, gpu).shared_by, 0u);
    }
    // More SMs need more tiles: with 24, 64 tiles of 128 x 128 are enough.
    EXPECT_EQ(gemm::choose({1024, 1024, 1024}, true, kSmallAmpere).tile->name, "128x256x8");
    EXPECT_EQ(gemm::choose({1024, 1024, 1024}, true, kAda).tile->name, "32x128x16");
}

TEST(Choose, RefusesAGpuWithTooLittleSharedMemory) {
    gemm::Gpu gpu = kTuring;
    gpu.limits.shared_bytes = gpu.limits.shared_bytes_of_block = 16 << 10;
    EXPECT_THROW(gemm::choose({64, 64, 64}, true, gpu), std::invalid_argument);
}

// Round by round, the time of tiles that have a block each.
double time_in_rounds(const gemm::TileCost& cost, const TileKernels& tile, const Shape& shape,
                      std::size_t multiprocessors) {
    const auto pieces = [](std::size_t extent, int size) {
        return course::ceil_div(extent, static_cast<std::size_t>(size));
    };
    const auto steps = static_cast<double>(pieces(shape.k, tile.bk));
    std::size_t left = pieces(shape.m, tile.bm) * pieces(shape.n, tile.bn);
    std::size_t blocks_of_first = 0;
    double time = 0;
    while (left > 0) {
        const std::size_t now = std::min(left, tile.most_blocks * multiprocessors);
        const std::size_t blocks = course::ceil_div(now, multiprocessors);
        if (blocks_of_first == 0) blocks_of_first = blocks;
        time += steps * cost.whole_step[blocks - 1];
        left -= now;
    }
    return time + cost.whole[blocks_of_first - 1];
}

TEST(Choose, CountsRoundsAndTheBlocksOfTheLast) {
    constexpr gemm::TileCost kCosts[] = {
#include "tune/h200.inc"
    };
    int compared = 0;
    for (const unsigned multiprocessors : {16u, 132u}) {
        for (const std::size_t n : {32, 256, 512, 1024, 1536, 2048, 3072, 4096}) {
            const Shape shape{n, n, 64};
            const gemm::Choice choice = gemm::choose(shape, true, hopper(multiprocessors));
            if (choice.shared_by != 0) continue;
            const auto* const cost = std::ranges::find_if(kCosts, [&](const gemm::TileCost& some) {
                return some.aligned && some.name == choice.tile->name;
            });
            ASSERT_NE(cost, std::end(kCosts));
            const double expected = time_in_rounds(*cost, *choice.tile, shape, multiprocessors);
            EXPECT_NEAR(choice.microseconds, expected, 1e-9 * expected)
                << n << " x " << n << " x 64 in tiles of " << choice.tile->name << " on " << multiprocessors
                << " multiprocessors";
            ++compared;
        }
    }
    EXPECT_GT(compared, 8) << "all others are shared out";
}

TEST(Choose, RefusesADeviceWithoutMultiprocessors) {
    EXPECT_THROW(gemm::choose({1, 1, 1}, true, hopper(0)), std::invalid_argument);
}

}  // namespace
