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
    course::Inspection neighbours(const std::string& version) {
        constexpr std::size_t kBest = 4;
        const auto& selector = course::find_variant(day48::top_k_variants(), version).launcher;
        DeviceBuffer<float> values(kN * kBest);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(
            selector.scratch_size({.m = kN, .n = kN, .d = kDepth, .k = kBest}));
        return course::inspect([&] {
            selector.launch({.factors = factors(),
                             .k = kBest,
                             .values = values.span(),
                             .indices = indices.span(),
                             .scratch = scratch.span()},
                            nullptr);
        });
    }
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day48::TopK& version : day48::top_k_variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(neighbours(version.name)));
    }
}

}  // namespace
