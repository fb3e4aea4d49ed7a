#include "common/device/tensor_core_support.hpp"

#include <gtest/gtest.h>

namespace {

using course::why_no_tensor_cores;

TEST(TensorCoreSupport, WantsCapabilityCodeAndSharedMemory) {
    EXPECT_EQ(why_no_tensor_cores({8, 80, 163'840}, 163'840), "");
    EXPECT_EQ(why_no_tensor_cores({9, 90, 232'448}, 196'608), "");
    EXPECT_EQ(why_no_tensor_cores({7, 70, 98'304}, 0),
              "needs tensor cores: compute capability 8.0, and code built for it; this GPU has 7.x, the "
              "code is for 7.x");
    EXPECT_EQ(why_no_tensor_cores({9, 75, 232'448}, 0),
              "needs tensor cores: compute capability 8.0, and code built for it; this GPU has 9.x, the "
              "code is for 7.x");
    EXPECT_EQ(why_no_tensor_cores({8, 86, 101'376}, 196'608),
              "needs 196608 bytes of shared memory in a block; this GPU has 101376");
}

TEST(BulkCopySupport, WantsTheCapabilityThatTheCodeIsFor) {
    EXPECT_EQ(course::why_no_bulk_copies(9), "");
    EXPECT_EQ(course::why_no_bulk_copies(8),
              "needs bulk copies, in code for compute capability 9.0; this GPU has 8.x");
    EXPECT_EQ(course::why_no_bulk_copies(10),
              "needs bulk copies, in code for compute capability 9.0; this GPU has 10.x");
}

}  // namespace
