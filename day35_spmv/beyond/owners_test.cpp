// The program about owners, as its user meets it.
#include <gtest/gtest.h>

#include <string>

#include "common/test/programs_test.hpp"

namespace {

using course::ProgramsTest;
using course::ShellOutcome;

using Owners = ProgramsTest;

TEST_F(Owners, BothMultiply) {
    expect_prints("owners", "", "reference counting: y is right;");
    expect_prints("owners", "", "one owner: y is right;");
}

// A copy is an owner as long as it exists; those of the launch are gone when it is complete.
TEST_F(Owners, CopiesAreCounted) {
    expect_prints("owners", "", "owners of the values: 1, in a function 2, after the launch 1\n");
}

TEST_F(Owners, AMoveLeavesNothingBehind) {
    expect_prints("owners", "", "after a move the old owner has 0 entries, the new one 2998\n");
}

// 2,998 entries of 12 bytes.
TEST_F(Owners, TheLastOneFrees) {
    const ShellOutcome outcome = run("owners");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    for (const char* line :
         {"reference counting: 0 bytes are left\n", "one owner: 0 bytes are left\n",
          "with a copy in a cache: 35976 bytes are left\n", "when the cache is empty: 0 bytes are left\n"})
        EXPECT_NE(outcome.text.find(line), std::string::npos) << line << "\n" << outcome.text;
    expect_no_leaks("owners", "");
}

// Three pointers and lengths; with the counters one more pointer for each array.
TEST_F(Owners, ArgumentsOfKernelsAreSmallerWithoutCounters) {
    expect_prints("owners", "", "reference counting: an argument of a kernel has 72 bytes");
    expect_prints("owners", "", "one owner: an argument of a kernel has 48 bytes");
}

TEST_F(Owners, AViewWithoutItsOwnerIsFoundOnTheCpu) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU may well read memory that has been freed";
    expect_fails("owners", "dangling", 1, "which has been freed");
}

TEST_F(Owners, RefusesOtherArguments) {
    expect_fails("owners", "nosuch", 2, "the argument is 'nosuch'; expected dangling, or none");
}

}  // namespace
