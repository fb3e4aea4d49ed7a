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
        return course::inspect(
            [&] {
                course::find_version(day47::masked_versions(), version)
                    .launcher.launch({.operands = operands(), .c = c(), .mask = day47::Mask::causal()},
                                     nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
    }

    // Requests of warps to load from global memory.
    static std::uint64_t loads(const course::Inspection& seen) {
        std::uint64_t requests = 0;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space == course::Space::kGlobal && line.operation == course::Operation::kLoad)
                    requests += line.requests;
            }
        }
        return requests;
    }
};

// Row r of the causal 512 x 512 has r / 32 + 1 warps with a kept element, of 16.
TEST_F(Lesson, WarpsWithoutAKeptElementLoadNothing) {
    const std::uint64_t all = kN * kN / 32;
    const std::uint64_t kept = 32 * (1 + kN / 32) * (kN / 32) / 2;
    EXPECT_EQ(kept, 4352u);
    EXPECT_EQ(all, 8192u);
    // Each of them loads an element of A and one of B for each of K.
    EXPECT_EQ(loads(causal("thread_per_element")), kept * 2 * kDepth);
}

// Of 16 tiles of 128 x 128 the diagonal crosses four, and six lie below it. The rest of C is
// written, and nothing is read for it.
TEST_F(Lesson, TilesThatKeepNothingAreNotLoaded) {
    const course::Inspection all = causal("element_mask");
    const course::Inspection some = causal("skip_tiles");
    EXPECT_GT(copied_bytes(some), 0u);
    EXPECT_EQ(copied_bytes(some) * 16, copied_bytes(all) * 10);
}

// Once; without the fusion, dropped elements are written twice.
TEST_F(Lesson, MaskedProductsAreWrittenOnce) {
    for (const char* version : {"thread_per_element", "element_mask", "skip_tiles", "skip_large_tiles"}) {
        SCOPED_TRACE(version);
        EXPECT_EQ(written_bytes(causal(version)), kN * kN * sizeof(float));
    }
    EXPECT_GT(written_bytes(causal("unfused")), kN * kN * sizeof(float) * 14 / 10);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day47::Masked& version : day47::masked_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(causal(version.name)));
    }
}

}  // namespace
