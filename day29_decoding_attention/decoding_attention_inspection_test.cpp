// What the lesson says of shares of the list, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "common/test/inspection_test.hpp"
#include "decoding_attention.hpp"

namespace {

using course::DeviceBuffer;

constexpr unsigned kBlocks = 7;
constexpr std::size_t kDim = 64;

// What equal_shares writes for one head of one sequence: the result, or parts of it.
std::uint64_t bytes_written(std::size_t length) {
    const day29::Shape shape{1, 1, 1, 1, length, kDim};
    const auto q = course::zeros<__half>(shape.q_elements());
    const auto kv = course::zeros<__half>(shape.cache_elements());
    const std::vector<int> lengths = {static_cast<int>(length)};
    const DeviceBuffer<int> on_device{std::span<const int>(lengths)};
    DeviceBuffer<__half> out(shape.q_elements());
    day29::Workspace workspace(shape, kBlocks);
    const auto launch = course::find_version(day29::versions<__half>(), "equal_shares").launcher;
    const course::Inspection seen = course::inspect([&] {
        launch({shape, q.span(), kv.span(), kv.span(), on_device.span(), out.span(), 1}, workspace, nullptr);
    });
    std::uint64_t bytes = 0;
    for (const course::KernelInspection& kernel : seen.kernels)
        if (kernel.name.find("equal_shares") != std::string::npos) bytes += kernel.global_written_bytes;
    return bytes;
}

// 5 tiles of keys: a share for each block would divide them.
TEST(Lesson, AShortListIsNotDivided) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_EQ(bytes_written(80), kDim * sizeof(__half));
}

// 63 tiles: all blocks but the first, whose share is what the head costs, have some, and leave a
// part.
TEST(Lesson, ALongListIsDividedAmongAllBlocks) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_GE(bytes_written(1000), (kBlocks - 1) * kDim * sizeof(float));
}

}  // namespace
