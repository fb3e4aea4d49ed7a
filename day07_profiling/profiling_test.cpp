// Each mystery, slow and repaired, against the CPU in double.
#include "profiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "trial.hpp"

namespace {

using course::DataPattern;
using day07::Trial;
using day07::Version;

class MysteryTest : public course::DeviceTestWithParam<const Version*> {
  protected:
    static void expect_right(std::size_t n, DataPattern pattern = DataPattern::kSignedUniform) {
        Trial trial(*GetParam(), n, pattern);
        trial.launch(*GetParam());
        const course::VerifyResult result = trial.verify();
        EXPECT_TRUE(result.ok()) << "n = " << n << ", " << course::name(pattern) << ": " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DaySeven, MysteryTest, course::each_of(day07::versions()), course::VersionName());

// Around a warp and a block, as far as the elements are not too many.
TEST_P(MysteryTest, EverySize) {
    for (const std::size_t n : {1, 2, 31, 33, 127, 128, 129, 255, 257, 1000, 5003})
        if (n == 1 || GetParam()->launcher.layout(n).in <= 300'000) expect_right(n);
}

TEST_P(MysteryTest, DataPatterns) {
    const std::size_t n = GetParam()->launcher.n_of(20'000);
    expect_right(n, DataPattern::kNormal);
    expect_right(n, DataPattern::kAllEqual);
    // The eighth power of 1e8 is no float.
    if (!GetParam()->name.starts_with("mystery4")) expect_right(n, DataPattern::kHugeNextToTiny);
}

TEST_P(MysteryTest, RefusesMemoryOfAnotherSize) {
    course::DeviceBuffer<float> memory = course::zeros<float>(1 << 17);
    const day07::Layout needs = GetParam()->launcher.layout(1);
    const auto refused = [&](std::size_t n, std::size_t in, std::size_t work, std::size_t out) {
        return course::refusal([&] {
            day07::run(*GetParam(), memory.span().subspan(0, in), n, memory.span().subspan(in, work),
                       memory.span().subspan(in + work, out), nullptr);
        });
    };
    const std::string& name = GetParam()->name;
    EXPECT_EQ(refused(1, needs.in, needs.work, needs.out), "");
    EXPECT_EQ(refused(0, 0, 0, 0), name + ": n is 0; expected at least 1");
    const auto wrong = [&](const char* argument, std::size_t size) {
        return name + ": " + argument + " has " + std::to_string(size + 1) + " elements; expected " +
               std::to_string(size);
    };
    EXPECT_EQ(refused(1, needs.in + 1, needs.work, needs.out), wrong("in", needs.in));
    EXPECT_EQ(refused(1, needs.in, needs.work + 1, needs.out), wrong("work", needs.work));
    EXPECT_EQ(refused(1, needs.in, needs.work, needs.out + 1), wrong("out", needs.out));
    EXPECT_EQ(course::refusal([&] {
                  day07::run(*GetParam(), memory.span().subspan(0, needs.in), 1,
                             memory.span().subspan(needs.in, needs.work), memory.span().subspan(0, needs.out),
                             nullptr);
              }),
              name + ": in, work and out overlap; expected memory of their own");
}

// --- What a launch asks for ----------------------------------------------------------------------

class Launches : public course::DeviceTest {
  protected:
    // What the version queues for n, as a graph, or the one kernel in it.
    static course::CapturedWork captured(const std::string& name, std::size_t n) {
        const Version& version = course::find_version(day07::versions(), name);
        const day07::Layout layout = version.launcher.layout(n);
        const course::DeviceBuffer<float> in = course::zeros<float>(layout.in);
        course::DeviceBuffer<float> work(layout.work);
        course::DeviceBuffer<float> out(layout.out);
        return course::CapturedWork(
            [&](cudaStream_t stream) { day07::run(version, in.span(), n, work.span(), out.span(), stream); });
    }

    // That a block of this size leaves each of its threads. A GPU also knows whether they suffice.
    static unsigned registers_of_a_thread(const std::string& name) {
        const cudaKernelNodeParams kernel = captured(name, 1000).kernel();
        if (!course::is_cpu_stand_in()) {
            cudaFuncAttributes attributes{};
            CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel.func));
            EXPECT_EQ(attributes.localSizeBytes != 0, name == "mystery4") << "are registers spilled?";
        }
        return 65536 / (kernel.blockDim.x * kernel.blockDim.y * kernel.blockDim.z);
    }

    // The share of the time in which an H200's 132 SMs have work, if blocks are equally long and an
    // SM runs one at a time.
    static double busy_share(const std::string& name) {
        const dim3 grid = captured(name, 4096).kernel().gridDim;
        const double waves = 1.0 * grid.x * grid.y * grid.z / 132;
        return waves / std::ceil(waves);
    }
};

TEST_F(Launches, Mystery4) {
    EXPECT_EQ(registers_of_a_thread("mystery4"), 64U);
    EXPECT_GE(registers_of_a_thread("mystery4_repaired"), 128U)
        << "registers for each thread, of 65,536 for the block; expected enough for two 8 x 8 matrices";
}

TEST_F(Launches, Mystery5) {
    EXPECT_NEAR(busy_share("mystery5"), 133 / 264.0, 1e-6);
    EXPECT_GT(busy_share("mystery5_repaired"), 0.9)
        << "of the time, 132 SMs have work, if blocks are equally long";
}

TEST_F(Launches, Mystery7) {
    EXPECT_EQ(captured("mystery7", 40).nodes(), 40U);
    EXPECT_EQ(captured("mystery7_repaired", 40).nodes(), 1U) << "launches for 40 rows";
}

// A graph records work without doing it: a number that the host needs for the next launch is not
// there yet.
TEST_F(Launches, Mystery8) {
    const auto recorded = [](const std::string& name) -> std::string {
        const Version& version = course::find_version(day07::versions(), name);
        Trial trial(version, 1000);
        try {
            const course::CapturedWork work([&](cudaStream_t stream) { trial.launch(version, stream); });
            // A copy to a variable that is gone by now must not be run.
            if (!work.only_kernels()) return "not only kernels are queued";
            work.run();
        } catch (const course::CudaError& error) {
            return error.what();
        }
        return trial.verify().ok() ? "" : trial.verify().message();
    };
    EXPECT_NE(recorded("mystery8"), "");
    EXPECT_EQ(recorded("mystery8_repaired"), "") << "as a graph, for which nothing may wait for the host";
}

}  // namespace
