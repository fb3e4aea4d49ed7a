// What the ladder says of its steps' accesses to shared memory, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Ladder : public testing::Test {
  protected:
    // Queues a product of 256 x 256 matrices: whole tiles of every step, several along K.
    std::function<void()> product(const std::string& step) {
        return [this, &kernel = course::find_version(gemm::steps(), step).launcher] {
            gemm::ScratchMemory scratch(kernel.scratch({kN, kN, kN}));
            kernel.launch({.a = DeviceMatrix<const float>(a_.span(), kN, kN),
                           .b = DeviceMatrix<const float>(b_.span(), kN, kN),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN),
                           .scratch = scratch.view()},
                          nullptr);
        };
    }

    // Wavefronts beyond what the bytes need.
    static std::uint64_t conflicts(const course::Inspection& seen) {
        std::uint64_t sum = 0;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines)
                sum += line.space == course::Space::kShared ? line.transactions - line.ideal : 0;
        }
        return sum;
    }

  private:
    static constexpr std::size_t kN = 256;
    const std::vector<float> ones_ = std::vector<float>(kN * kN, 1.0f);
    const DeviceBuffer<float> a_{std::span(ones_)};
    const DeviceBuffer<float> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(Ladder, TheSwizzleTakesConflictsAway) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    EXPECT_GT(conflicts(course::inspect(product("07_double_buffering"))), 0u);
    EXPECT_LT(conflicts(course::inspect(product("08_swizzle"))),
              conflicts(course::inspect(product("07_double_buffering"))));
    EXPECT_GT(conflicts(course::inspect(product("09_warp_tiling"))), 0u);
    EXPECT_CONFLICT_FREE(product("10_warp_tiling_swizzle"));
}

TEST_F(Ladder, NoStepHasRaces) {
    for (const gemm::Step& step : gemm::steps()) {
        SCOPED_TRACE(step.name);
        EXPECT_NO_RACES(product(step.name));
    }
}

}  // namespace
