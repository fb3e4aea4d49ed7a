// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/device/device_buffer.hpp"
#include "common/test/matmul_inspection_test.hpp"
#include "reduce_in_matmul.hpp"

namespace {

using course::DeviceBuffer;

class Lesson : public course::MatmulInspectionTest {
  protected:
    course::Inspection minima(const std::string& version) {
        const auto& reducer = course::find_version(day46::reduce_versions(), version).launcher;
        DeviceBuffer<float> values(kN);
        DeviceBuffer<std::uint64_t> scratch(reducer.scratch_size({.m = kN, .n = kN, .d = kDepth}));
        return course::inspect([&] {
            reducer.launch({.operands = operands(), .values = values.span(), .scratch = scratch.span()},
                           nullptr);
        });
    }
};

// What is written of a row is 8 bytes for each warp and block, in a sector of its own, and the
// result. How many blocks share a row depends on the number of multiprocessors: with a tile for
// each block it is a quarter of the product, with more tiles less.
TEST_F(Lesson, FusedReductionsDoNotWriteTheProduct) {
    constexpr std::size_t kProduct = kN * kN * sizeof(float);
    constexpr std::size_t kSector = 32;
    const auto& fused = course::find_version(day46::reduce_versions(), "fused").launcher;
    const std::size_t parts = fused.scratch_size({.m = kN, .n = kN, .d = kDepth});  // without norms
    EXPECT_GE(written_bytes(minima("unfused")), kProduct);
    // The two halves of a state may be stored by two instructions.
    const std::size_t written = written_bytes(minima("fused"));
    EXPECT_GE(written, parts * kSector + kN * sizeof(float));
    EXPECT_LE(written, 2 * parts * kSector + kN * sizeof(float));
    EXPECT_LE(parts * kSector, kProduct / 4);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day46::Reduce& version : day46::reduce_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(minima(version.name)));
    }
}

}  // namespace
