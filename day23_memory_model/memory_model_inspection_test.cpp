// No version has races; nor does a form of a litmus test that orders its accesses.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "memory_model.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kElements = 12 * 1024 + 5;

TEST(Lesson, NoVersionHasRaces) {
    const std::vector<std::int32_t> zeros(kElements);
    const DeviceBuffer<std::int32_t> in{std::span(zeros)};
    DeviceBuffer<day23::Record> total(1);
    day23::Workspace workspace(kElements);
    for (const auto& version : day23::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES([&] { version.launcher(in.span(), total.span(), workspace, nullptr); });
    }
}

TEST(Lesson, TheSequenceLockHasNoRaces) {
    DeviceBuffer<std::uint32_t> mixed(3);
    DeviceBuffer<std::uint32_t> memory(day23::state_words());
    EXPECT_NO_RACES([&] { day23::read_while_written(50, mixed.span(), memory.span(), nullptr); });
}

}  // namespace
