// The programs about random numbers, as their user meets them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/test/programs_test.hpp"

namespace {

using course::ProgramsTest;
using course::ShellOutcome;

using SameSeed = ProgramsTest;

// Fixed by the C++ standard, [rand.predef].
TEST_F(SameSeed, TheEngineIsTheStandards) {
    expect_prints("same_seed", "", "number 10000 is 4123659995;");
}

// The numbers of seed 42 were computed once with exact fractions, and rounded once.
TEST_F(SameSeed, OurNumbersAreTheSameWithEveryCompilerAndInAKernel) {
    expect_prints(
        "same_seed", "",
        "our uniform numbers: -0x1.6d638p+0 0x1.5d8ccap-1 0x1.741d44p+0, fingerprint b0c2a9888891e0a9\n");
    expect_prints("same_seed", "", "our uniform numbers in a kernel: 0 of 10000 differ\n");
}

// As many as with exact fractions, where the product is rounded first.
TEST_F(SameSeed, RoundingTwiceChangesManyNumbers) {
    expect_prints("same_seed", "", "rounded twice instead of once: 4098 of 10000 differ\n");
}

using RandomNumbers = ProgramsTest;

TEST_F(RandomNumbers, AreUniform) {
    for (const std::string n : {"1000", "1023", "64000", "1000000"}) {
        const std::string numbers = "the mean of " + n + " numbers is 0.";
        const ShellOutcome outcome = run("random_numbers", n);
        EXPECT_EQ(outcome.exit_code, 0) << n << "\n" << outcome.text;
        for (const std::string way : {"host API: ", "device API: "})
            EXPECT_NE(outcome.text.find(way + numbers), std::string::npos) << n << "\n" << outcome.text;
    }
}

// Philox4x32-10's numbers for seed 42: the hits were counted by another program.
TEST_F(RandomNumbers, HitsAreThoseOfPhilox) {
    expect_prints("random_numbers", "1000", "pi: 813 of 1024 points");
    expect_prints("random_numbers", "64000", "pi: 50390 of 64000 points");
}

TEST_F(RandomNumbers, AreTheSameInEveryRun) {
    const ShellOutcome once = run("random_numbers", "5000");
    const ShellOutcome again = run("random_numbers", "5000");
    EXPECT_EQ(once.exit_code, 0) << once.text;
    EXPECT_EQ(once.text, again.text);
}

TEST_F(RandomNumbers, FreeWhatTheyAllocate) {
    expect_no_leaks("random_numbers", "1000");
    expect_no_leaks("same_seed", "");
}

TEST_F(RandomNumbers, RefuseACountThatIsNone) {
    for (const std::string n : {"0", "999", "268435457", "-1", "abc", "12x", "1e6"})
        expect_fails("random_numbers", n, 2,
                     "N is '" + n + "'; expected a whole number from 1000 to 268435456");
    expect_fails("random_numbers", "1000 2", 2, "usage: random_numbers [N]");
}

}  // namespace
