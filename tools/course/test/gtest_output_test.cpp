#include "gtest_output.hpp"

#include <gtest/gtest.h>

namespace course::tool {
namespace {

TEST(GtestOutput, CountsAndKeepsWhatTheTestSaid) {
    const GtestOutput output = parse_gtest_output(R"(Note: Google Test filter = *
[==========] Running 3 tests from 1 test suite.
[ RUN      ] Day/V.All/one
a warning of the runtime
/root/day/a_test.cpp:76: Failure
Value of: result.ok()
  Actual: false
Expected: true
n = 3: 1 of 3 values differs:
  [2]: expected 1, got nan

/root/day/a_test.cpp:80: Failure
Expected equality of these values:
  1
  2
[  FAILED  ] Day/V.All/one, where GetParam() = one (3 ms)
[ RUN      ] Day/V.All/two
[       OK ] Day/V.All/two (0 ms)
[ RUN      ] Day/V.Big/two
/root/day/a_test.cpp:90: Skipped
needs a GPU

[  SKIPPED ] Day/V.Big/two (0 ms)
[----------] 3 tests from Day/V (3 ms total)
[==========] 3 tests from 1 test suite ran. (3 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Day/V.Big/two
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Day/V.All/one, where GetParam() = one
)");
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.skipped, 1);
    EXPECT_EQ(output.skip_reason, "needs a GPU");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].name, "Day/V.All/one");
    EXPECT_EQ(output.failed[0].messages,
              (std::vector<std::string>{
                  "n = 3: 1 of 3 values differs:\n  [2]: expected 1, got nan\n(/root/day/a_test.cpp:76)",
                  "1 is not 2\n(/root/day/a_test.cpp:80)"}));
    EXPECT_EQ(output.unfinished, "");
    EXPECT_FALSE(output.ran_none());
}

TEST(GtestOutput, WhatAnAssertionSaysStandsWithoutItsFrame) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\na.cu:1: Failure\nValue of: course::no_races([&] { launch(); })\n  Actual: false "
        "(2 "
        "findings\nrace: a[3] (a.cu:7)\nrace: a[4])\nExpected: true\n[  FAILED  ] A.B (0 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages[0], "2 findings\nrace: a[3] (a.cu:7)\nrace: a[4]\n(a.cu:1)");
}

TEST(GtestOutput, WhatATestLooksAtIsToldWhereItSaysNothingElse) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\na.cpp:1: Failure\nValue of: x.ok()\n  Actual: false\nExpected: true\n[  FAILED  ] "
        "A.B (0 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages[0], "x.ok() is false; expected true\n(a.cpp:1)");
}

TEST(GtestOutput, TheCaseStandsBehindTheMessage) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\na.cpp:1: Failure\nFailed\nwrong\nGoogle Test trace:\n/d/a.cpp:7: n = 3\n"
        "/d/random.hpp:9: seed 5\n\n[  FAILED  ] A.B (0 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages[0], "wrong\nin the case: n = 3, seed 5\n(a.cpp:1)");
}

TEST(GtestOutput, WhereAFunctionFailedIsToldOnce) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\na.cpp:1: Failure\nFailed\n3 x 3: wrong\n\na.cpp:9: Failure\nExpected: check() "
        "doesn't "
        "generate new fatal failures in the current thread.\n  Actual: it does.\n[  FAILED  ] A.B (0 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages, (std::vector<std::string>{"3 x 3: wrong\n(a.cpp:1)"}));
}

TEST(GtestOutput, AnExceptionHasNoPlace) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\nunknown file: Failure\nC++ exception with description \"kernel launch failed\" "
        "thrown "
        "in the test body.\n[  FAILED  ] A.B (0 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages[0], "kernel launch failed");
}

TEST(GtestOutput, FilesAreNamedFromTheCheckoutNotFromTheBuildDirectory) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\n../../day/a_test.cpp:76: Failure\nwrong\n[  FAILED  ] A.B (1 ms)\n");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages, std::vector<std::string>{"wrong\n(day/a_test.cpp:76)"});
}

TEST(GtestOutput, WhatKernelsPrintBetweenFailuresIsNoPartOfThem) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\n[block 0, thread 0] i = 0\na.cpp:1: Failure\nwrong\n[block (0,1,0), thread 1] i = "
        "1\n"
        "a.cpp:2: Failure\n[block] wrong, too\n");
    EXPECT_EQ(output.unfinished, "A.B");
    EXPECT_EQ(output.in_unfinished.printed, "[block 0, thread 0] i = 0\n");
    EXPECT_EQ(output.in_unfinished.messages,
              (std::vector<std::string>{"wrong\n(a.cpp:1)", "[block] wrong, too\n(a.cpp:2)"}));
}

TEST(GtestOutput, KnowsWhichTestDied) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[ RUN      ] A.C\nkernel f: thread 3 reads past the end");
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.unfinished, "A.C");
    EXPECT_EQ(output.last_words, "kernel f: thread 3 reads past the end\n");
}

TEST(GtestOutput, WhatFailedBeforeATestDiedIsToldInPlainWords) {
    const GtestOutput output = parse_gtest_output(
        "[ RUN      ] A.C\ni = 3\na.cpp:1: Failure\nValue of: ok\n  Actual: false\nExpected: true\nn = 4\n");
    EXPECT_EQ(output.unfinished, "A.C");
    EXPECT_EQ(output.last_words, "i = 3\nn = 4\n(a.cpp:1)\n");
}

TEST(GtestOutput, ATestThatPassedLastIsFinished) {
    EXPECT_EQ(parse_gtest_output("[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n").unfinished, "");
}

TEST(GtestOutput, NothingIsNothing) {
    EXPECT_TRUE(parse_gtest_output("").ran_none());
    EXPECT_TRUE(
        parse_gtest_output("[==========] Running 0 tests from 0 test suites.\n[  PASSED  ] 0 tests.\n")
            .ran_none());
    EXPECT_TRUE(
        parse_gtest_output("[  FAILED  ] 1 test, listed below:\n[       OK ] no test began\n").ran_none());
}

TEST(GtestOutput, WhatAKernelPrintsMayStandBeforeTheResult) {
    const GtestOutput output = parse_gtest_output(R"([ RUN      ] A.B/one
i = 1 [       OK ] [       OK ] A.B/one (0 ms)
[ RUN      ] A.B/two
i = 1
i = 2
a.cpp:1: Failure
wrong
i = 3[  FAILED  ] A.B/two, where GetParam() = two (0 ms)
)");
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.unfinished, "");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].printed, "i = 1\ni = 2\n");
    EXPECT_EQ(output.failed[0].messages[0], "wrong\ni = 3\n(a.cpp:1)");
}

}  // namespace
}  // namespace course::tool
