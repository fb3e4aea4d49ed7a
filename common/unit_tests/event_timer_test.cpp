#include "common/bench/event_timer.hpp"

#include <gtest/gtest.h>

#include "common/bench/head_start.hpp"
#include "common/bench/machine.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using EventTimerTest = course::DeviceTest;

static_assert(!std::is_copy_constructible_v<course::Event> && std::is_move_constructible_v<course::Event>);

TEST_F(EventTimerTest, TimesWhatIsQueuedBetweenStartAndStop) {
    course::DeviceBuffer<float> buffer(1 << 16);
    course::EventTimer timer;
    timer.start();
    course::testing::fill(buffer.span(), 1, 0, 1 << 16);
    timer.stop();
    EXPECT_GT(timer.elapsed_ms(), 0);
    EXPECT_LT(timer.elapsed_ms(), 60e3);
}

TEST_F(EventTimerTest, CanBeUsedAgain) {
    course::EventTimer timer;
    for (int i = 0; i < 2; ++i) {
        timer.start();
        timer.stop();
        EXPECT_GE(timer.elapsed_ms(), 0);
    }
}

TEST_F(EventTimerTest, WithoutStartThereIsNothingToTell) {
    course::EventTimer timer;
    EXPECT_THROW(timer.elapsed_ms(), course::CudaError);
}

// The host runs ahead while the GPU is still busy with the head start.
TEST_F(EventTimerTest, AHeadStartKeepsTheGpuBusy) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: on the CPU nothing overlaps";
    course::give_head_start(1, nullptr);  // loads the kernel
    course::EventTimer timer;
    timer.start();
    course::give_head_start(1000, nullptr);
    timer.stop();
    EXPECT_GT(timer.elapsed_ms(), 0.5F);
    EXPECT_LT(timer.elapsed_ms(), 5.0F);
}

}  // namespace
