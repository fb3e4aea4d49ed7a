// Programs that are started without a shell: what they get, what comes back.
#include "child_process.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using cuda_on_cpu::ChildResult;
using cuda_on_cpu::Errors;
using cuda_on_cpu::read_child;
using cuda_on_cpu::run_child;

std::vector<std::string> shell(const std::string& script) {
    return {"sh", "-c", script};
}

TEST(ChildProcess, GivesItsExitCodeOr128AndItsSignal) {
    EXPECT_EQ(run_child({shell("exit 42")}).exit_code, 42);
    EXPECT_EQ(run_child({shell("kill -KILL $$")}).exit_code, 128 + SIGKILL);
}

TEST(ChildProcess, ThatCannotBeStartedHasAnErrorNumber) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"no-such-program"}, {}}) {
        const ChildResult result = read_child({arguments});
        EXPECT_EQ(result.error, ENOENT);
        EXPECT_EQ(result.exit_code, 127);
    }
}

TEST(ChildProcess, GetsItsArgumentsAsTheyAre) {
    EXPECT_EQ(read_child({{"printf", "%s|", "", "two words", "$HOME", "a'b", "\"", "*"}}).output,
              "|two words|$HOME|a'b|\"|*|");
}

TEST(ChildProcess, WritesErrorsWhereItShould) {
    const std::vector<std::string> both = shell("echo out; echo err >&2");
    EXPECT_EQ(read_child({.arguments = both, .errors = Errors::with_output}).output, "out\nerr\n");
    EXPECT_EQ(read_child({.arguments = both, .errors = Errors::nowhere}).output, "out\n");
}

TEST(ChildProcess, ReadsAFile) {
    EXPECT_EQ(read_child({.arguments = {"cat"}, .input_file = "/dev/null"}).output, "");
    EXPECT_EQ(read_child({.arguments = {"head", "-c", "2"}, .input_file = "/proc/self/comm"}).output.size(),
              2U);
}

TEST(ChildProcess, HasSettingsInPlaceOfThisProcesss) {
    setenv("CHILD_PROCESS_TEST", "outer", 1);
    EXPECT_EQ(
        read_child({.arguments = shell("echo $CHILD_PROCESS_TEST"), .settings = {"CHILD_PROCESS_TEST=inner"}})
            .output,
        "inner\n");
    EXPECT_EQ(read_child({shell("echo $CHILD_PROCESS_TEST")}).output, "outer\n");
    unsetenv("CHILD_PROCESS_TEST");
}

TEST(ChildProcess, KeepsVariablesWhoseNamesBeginLikeOneThatIsSet) {
    setenv("CHILD_PROCESS", "shorter", 1);
    setenv("CHILD_PROCESS_TESTS", "longer", 1);
    const std::string script = "echo $CHILD_PROCESS $CHILD_PROCESS_TEST $CHILD_PROCESS_TESTS";
    EXPECT_EQ(read_child({.arguments = shell(script), .settings = {"CHILD_PROCESS_TEST=set"}}).output,
              "shorter set longer\n");
    unsetenv("CHILD_PROCESS");
    unsetenv("CHILD_PROCESS_TESTS");
}

}  // namespace
