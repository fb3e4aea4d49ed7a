#include "common/bench/machine.hpp"

#include <gtest/gtest.h>

#include "common/test/device_test.hpp"

namespace {

using MachineTest = course::DeviceTest;

TEST(Machine, SlugNamesADirectory) {
    EXPECT_EQ(course::machine_slug("NVIDIA H200"), "h200");
    EXPECT_EQ(course::machine_slug("NVIDIA GeForce RTX 4090"), "geforce-rtx-4090");
    EXPECT_EQ(course::machine_slug("NVIDIA H100 80GB HBM3"), "h100-80gb-hbm3");
    EXPECT_EQ(course::machine_slug(" ../x/ "), "x");
    EXPECT_EQ(course::machine_slug("??"), "unknown");
}

TEST(Machine, DriverVersionIsFoundInProc) {
    EXPECT_EQ(
        course::driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 2024\n"
                               "GCC version:  gcc version 12.2.0\n"),
        "550.54.14");
    EXPECT_EQ(course::driver_version(
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release\n"),
              "580.95.05");
    EXPECT_EQ(course::driver_version(""), "");
}

TEST_F(MachineTest, ThisOneHasAName) {
    const course::Machine machine = course::this_machine();
    EXPECT_FALSE(machine.device.empty());
    EXPECT_FALSE(machine.driver.empty());
    EXPECT_NE(machine.cuda.find('.'), std::string::npos) << machine.cuda;
    EXPECT_EQ(machine.slug == "cpu", course::is_cpu_stand_in());
}

}  // namespace
