// What the lesson says of the blocks of each grid, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "mixture_of_experts.hpp"

namespace {

using course::DeviceBuffer;

// The logits: token t prefers expert t % 4, then the next one. 128 tokens, 2 of 8 experts.
constexpr day27::Shape kShape{128, 32, 64, 8, 2};

course::Inspection inspect(const std::string& version) {
    std::vector<float> logits(kShape.tokens * kShape.experts, -9);
    for (std::size_t token = 0; token < kShape.tokens; ++token) {
        logits[token * kShape.experts + token % 4] = 2;
        logits[token * kShape.experts + token % 4 + 1] = 1;
    }
    const DeviceBuffer<float> on_device{std::span<const float>(logits)};
    const DeviceBuffer<float> x{std::span<const float>(std::vector<float>(kShape.tokens * kShape.hidden))};
    const DeviceBuffer<float> weights{
        std::span<const float>(std::vector<float>(kShape.experts * kShape.hidden * kShape.width))};
    DeviceBuffer<float> out(kShape.tokens * kShape.width);
    day27::Workspace workspace(kShape);
    const auto launch = course::find_version(day27::versions(), version).launcher;
    return course::inspect([&] {
        launch({kShape, on_device.span(), x.span(), weights.span(), out.span()}, workspace, nullptr);
    });
}

// Bytes that the kernels whose names have `part` read.
std::uint64_t bytes_read(const course::Inspection& seen, const std::string& part) {
    std::uint64_t bytes = 0;
    for (const course::KernelInspection& kernel : seen.kernels)
        if (kernel.name.find(part) != std::string::npos) bytes += kernel.global_read_bytes;
    return bytes;
}

// A tile loads a matrix once for its 32 rows, a thread of every_token for its own result.
TEST(Lesson, ATileReadsFarFewerWeights) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_GT(bytes_read(inspect("every_token"), "add_expert"),
              4 * bytes_read(inspect("sorted"), "multiply_one"));
}

// 5 experts have 32, 64, 64, 64 and 32 pairs: 8 tiles, each with 32 x 64 weights of 4 bytes.
TEST(Lesson, EachVersionLoadsTheSameTiles) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const std::uint64_t least = 8 * 32 * 64 * 4;
    for (const char* version : {"one_launch_gather", "tile_list", "resident"}) {
        const std::uint64_t bytes = bytes_read(inspect(version), "multiply_");
        EXPECT_GE(bytes, least) << version;
        EXPECT_LE(bytes, 2 * least) << version;
    }
}

}  // namespace
