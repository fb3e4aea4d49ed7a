// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/test/matmul_inspection_test.hpp"
#include "masked_matmul.hpp"

namespace {

class Lesson : public course::MatmulInspectionTest {
  protected:
    course::Inspection causal(const std::string& version) {
        return course::inspect([&] {
            course::find_variant(day47::masked_variants(), version)
                .launcher.launch({.factors = factors(), .c = c(), .mask = day47::Mask::causal()}, nullptr);
        });
    }
};

// Of 16 tiles of 128 x 128 the diagonal crosses four, and six lie below it. The rest of C is written, and nothing is read for it.
TEST_F(Lesson, TilesThatKeepNothingAreNotLoaded) {
    const course::Inspection all = causal("element_mask");
    const course::Inspection some = causal("skip_tiles");
    EXPECT_GT(copied_bytes(some), 0u);
    EXPECT_EQ(copied_bytes(some) * 16, copied_bytes(all) * 10);
}

// Once; without the fusion, what the mask does not keep is written twice.
TEST_F(Lesson, MaskedProductsAreWrittenOnce) {
    for (const char* version : {"element_mask", "skip_tiles", "skip_large_tiles"}) {
        SCOPED_TRACE(version);
        EXPECT_EQ(written_bytes(causal(version)), kN * kN * sizeof(float));
    }
    EXPECT_GT(written_bytes(causal("unfused")), kN * kN * sizeof(float) * 14 / 10);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day47::Masked& version : day47::masked_variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(causal(version.name)));
    }
}

}  // namespace
