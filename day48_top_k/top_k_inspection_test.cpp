// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/device/device_buffer.hpp"
#include "common/test/matmul_inspection_test.hpp"
#include "top_k.hpp"

namespace {

using course::DeviceBuffer;

class Lesson : public course::MatmulInspectionTest {
  protected:
    static constexpr std::size_t kBest = 4;

    course::Inspection neighbours(const std::string& version) {
        const auto& selector = course::find_version(day48::top_k_versions(), version).launcher;
        DeviceBuffer<float> values(kN * kBest);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(
            selector.scratch_size({.m = kN, .n = kN, .d = kDepth, .k = kBest}));
        return course::inspect(
            [&] {
                selector.launch({.factors = factors(),
                                 .k = kBest,
                                 .values = values.span(),
                                 .indices = indices.span(),
                                 .scratch = scratch.span()},
                                nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
    }
};

// What the kernels whose name contains `kernel` read from global memory.
std::uint64_t bytes_read_by(const std::string& kernel, const course::Inspection& seen) {
    std::uint64_t bytes = 0;
    for (const course::KernelInspection& each : seen.kernels) {
        if (each.name.find(kernel) != std::string::npos) bytes += each.global_read_bytes;
    }
    return bytes;
}

TEST_F(Lesson, MinimaReadARowKTimesASelectionOnce) {
    constexpr std::size_t kMatrix = kN * kN * sizeof(float);
    EXPECT_EQ(bytes_read_by("select_k_minima", neighbours("k_minima")), kBest * kMatrix);
    EXPECT_EQ(bytes_read_by("select_best", neighbours("unfused")), kMatrix);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day48::TopK& version : day48::top_k_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(neighbours(version.name)));
    }
}

}  // namespace
