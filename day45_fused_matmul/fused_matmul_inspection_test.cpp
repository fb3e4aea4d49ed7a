// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/test/matmul_inspection_test.hpp"
#include "fused_matmul.hpp"

namespace {

using course::Op;

class Lesson : public course::MatmulInspectionTest {
  protected:
    course::Inspection product(const std::string& version, const course::Operands& operands) {
        return course::inspect([&] {
            course::find_version(day45::versions(), version)
                .launcher({.operands = operands, .c = c()}, nullptr);
        });
    }
};

// Copies go to 32 different banks, whichever way the matrices lie, and fragments are read without
// conflicts. All of a sector that is touched is used: by copies of 32 bytes of four rows, and by
// results in float4.
TEST_F(Lesson, EveryLayoutIsFreeOfConflictsAndInWholeSectors) {
    for (const Op op_a : {Op::kNone, Op::kTranspose}) {
        for (const Op op_b : {Op::kNone, Op::kTranspose}) {
            SCOPED_TRACE(std::string(op_a == Op::kNone ? "N" : "T") + (op_b == Op::kNone ? "N" : "T"));
            const course::Inspection seen = product("pipelined", operands(op_a, op_b));
            EXPECT_TRUE(course::conflict_free(seen));
            EXPECT_TRUE(course::coalesced(seen));
        }
    }
}

// The same bytes of B in a quarter of the copies. A always comes float by float.
TEST_F(Lesson, AlignedRowsOfBTakeAQuarterOfTheCopies) {
    const course::Inspection aligned = product("pipelined", operands());
    const course::Inspection misaligned = product("pipelined", operands(Op::kNone, Op::kNone, 1));
    const std::uint64_t of_a = copies(aligned, 4);
    EXPECT_EQ(copies(misaligned, 16), 0u);
    EXPECT_EQ(copies(misaligned, 4) - of_a, 4 * copies(aligned, 16));
    EXPECT_EQ(copied_bytes(misaligned), copied_bytes(aligned));
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day45::Batched& version : day45::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(product(version.name, operands())));
    }
}

}  // namespace
