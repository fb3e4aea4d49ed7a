// The ladder's program as its user meets it: which steps and shapes it runs, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/bench/build_info.hpp"
#include "common/bench/machine.hpp"
#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"

namespace {

class LadderProgram : public course::DeviceTest {
  protected:
    static std::string output_of(const std::string& arguments, int exit_code = 0) {
        // It lies beside the test, wherever that was copied to.
        const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gemm_ladder";
        const course::ShellOutcome outcome = course::run_in_shell("'" + program.string() + "' " + arguments);
        EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.text;
        return outcome.text;
    }
    static bool contains(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }
    static void expect_refused(const std::string& arguments, const std::string& message) {
        const std::string text = output_of(arguments, 2);
        EXPECT_TRUE(contains(text, message)) << arguments << "\n" << text;
    }
};

TEST_F(LadderProgram, RunsTheStepsThatAreAskedFor) {
    const std::string one = output_of("--step 2 --size 8x8x8");
    EXPECT_TRUE(contains(one, "02_shared_memory")) << one;
    EXPECT_FALSE(contains(one, "01_naive")) << one;
    EXPECT_FALSE(contains(one, "00_cublas")) << one;
    for (const std::string arguments : {"--step 0,1", "--step 0 --step 1"}) {
        const std::string two = output_of(arguments + " --size 8x8x8");
        EXPECT_TRUE(contains(two, "00_cublas (peer)")) << two;
        EXPECT_TRUE(contains(two, "01_naive")) << two;
        EXPECT_FALSE(contains(two, "02_shared_memory")) << two;
    }
    for (const std::string arguments : {"", "--step all"}) {
        const std::string all = output_of(arguments + " --size 8x8x8");
        for (const char* name : {"00_cublas", "01_naive", "02_shared_memory"})
            EXPECT_TRUE(contains(all, name)) << all;
    }
}

TEST_F(LadderProgram, ANumberSelectsAStepAndWhatPreparesIt) {
    const std::string text = output_of("--step 4 --size 8x8x8");
    for (const char* name : {"04a_larger_tile", "04b_plain_loads", "04_thread_tile_2d"})
        EXPECT_TRUE(contains(text, name)) << text;
    EXPECT_FALSE(contains(text, "03_thread_tile_1d")) << text;
    EXPECT_FALSE(contains(output_of("--only 04a_larger_tile --size 8x8x8"), "04_thread_tile_2d"));
}

TEST_F(LadderProgram, RunsTheShapeThatIsAskedFor) {
    EXPECT_TRUE(contains(output_of("--step 1 --m 3 --n 4 --k 5"), "sgemm 3x4x5, float"));
    EXPECT_TRUE(contains(output_of("--step 1 --n 9"), "sgemm 9x9x9, float"))
        << "square, where nothing else is said";
    EXPECT_TRUE(contains(output_of("--step 1 --k 7 --m 9"), "sgemm 9x9x7, float"));
}

// Verified, though each launch changes what the next one reads.
TEST_F(LadderProgram, AlphaAndBeta) {
    const std::string text = output_of("--step 1,2 --m 33 --n 20 --k 10 --alpha -2 --beta 0.5");
    EXPECT_TRUE(contains(text, "sgemm 33x20x10, alpha -2, beta 0.5, float")) << text;
    EXPECT_TRUE(contains(text, "  ok\n")) << text;
    output_of("--step 1 --size 5x5x5 --alpha 0 --beta 3");
}

TEST_F(LadderProgram, RefusesWhatIsNoStepAndNoShape) {
    expect_refused("--step 99", "--step 99: expected all, or numbers of 0, 1, 2");
    expect_refused("--step 1,naive", "--step naive: expected all");
    expect_refused("--step all,99", "--step 99: expected all");
    expect_refused("--step 1 --only 01_naive", "excludes");
    expect_refused("--m 0", "--m 0: expected a number > 0");
    expect_refused("--n 4 --k -1", "--k -1: expected a number > 0");
    expect_refused("--m 99999999999999999999", "expected at most");
    expect_refused("--size 4294967296x1x4294967297", "whose product is at most 2^60");
    expect_refused("--size 5x5", "expected m x n x k");
    expect_refused("--m 5 --size 5x5x5", "--m: expected without --size, --bench and --sweep");
    expect_refused("--alpha nan", "--alpha nan: expected a finite number");
    expect_refused("--beta inf", "--beta inf: expected a finite number");
    expect_refused("--listed", "--listed: expected with --sweep");
    if (course::is_release_build())
        expect_refused("--sweep --beta 2", "random shapes are measured with 1 and 0; expected --listed");
}

TEST_F(LadderProgram, TheSweepHasManyShapes) {
    if (!course::is_cpu_stand_in() || !course::is_release_build())
        GTEST_SKIP() << "needs a Release build for the CPU, where the sweep is short";
    const std::string text = output_of("--sweep --step 1");
    std::size_t shapes = 0;
    for (const std::string part : {"left out on the CPU: size ", "\nsgemm "}) {
        for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
            ++shapes;
    }
    EXPECT_GE(shapes, 48u) << text;
}

}  // namespace
