#include "test_events.hpp"

#include <gtest/gtest.h>

namespace course::tool {
namespace {

// An event as a program prints it.
std::string event(const std::string& fields) {
    return "\x1e{" + fields + "}\n";
}

std::string started(const std::string& test) {
    return event(R"("event":"started","test":")" + test + "\"");
}

std::string ended(const std::string& test, const std::string& result) {
    return event(R"("event":"ended","test":")" + test + R"(","result":")" + result + "\"");
}

std::string failure(const std::string& test, const std::string& file, const std::string& message) {
    return event(R"("event":"failure","test":")" + test + R"(","file":")" + file +
                 R"(","line":76,"message":")" + message + "\"");
}

TEST(TestEvents, CountsAndKeepsWhatTheTestSaid) {
    const TestOutput output = parse_test_output(
        "before all\n" + started("Day/V.All/one") + "a warning of the runtime\n" +
        failure("Day/V.All/one", "/root/day/a_test.cpp",
                "Value of: x.ok()\\n  Actual: false\\nExpected: true\\nwrong") +
        failure("Day/V.All/one", "/root/day/a_test.cpp", "Expected equality of these values:\\n  1\\n  2") +
        ended("Day/V.All/one", "failed") + started("Day/V.All/two") + ended("Day/V.All/two", "passed") +
        started("Day/V.Big/two") +
        event(R"("event":"ended","test":"Day/V.Big/two","result":"skipped","message":"needs a GPU")") +
        "after all\n");
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.skipped, 1);
    EXPECT_EQ(output.skip_reason, "needs a GPU");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].name, "Day/V.All/one");
    EXPECT_EQ(output.failed[0].printed, "a warning of the runtime\n");
    EXPECT_EQ(output.failed[0].messages, (std::vector<std::string>{"wrong", "1 is not 2"}));
    EXPECT_EQ(output.unfinished, "");
    EXPECT_EQ(output.printed, "before all\na warning of the runtime\nafter all\n");
    EXPECT_FALSE(output.ran_none());
}

// A learner looks for mistakes in his own file. An exception of a test's own call names the test.
TEST(TestEvents, NoMessageNamesALineOfATest) {
    const auto message_of = [](const std::string& words) {
        const TestOutput output = parse_test_output(started("A.B") + failure("A.B", "day/a_test.cpp", words) +
                                                    ended("A.B", "failed"));
        return output.failed.at(0).messages.at(0);
    };
    EXPECT_EQ(message_of("wrong"), "wrong");
    EXPECT_EQ(message_of("day15_reduction/reduction_test.cpp:46: cudaDeviceSynchronize(): no"),
              "cudaDeviceSynchronize(): no");
    EXPECT_EQ(message_of("/a/b/common/test/device_test.hpp:95: cudaStreamEndCapture(): no"),
              "cudaStreamEndCapture(): no");
    EXPECT_EQ(message_of("my/day15_reduction/reduction.cuh:46: cudaMalloc(): no"),
              "my/day15_reduction/reduction.cuh:46: cudaMalloc(): no");
}

TEST(TestEvents, AFunctionThatFailedIsReportedOnce) {
    const TestOutput output = parse_test_output(
        started("A.B") + failure("A.B", "a.cpp", "Failed\\n3 x 3: wrong") +
        failure("A.B", "a.cpp",
                "Expected: check() doesn't generate new fatal failures in the current thread.") +
        ended("A.B", "failed"));
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].messages, (std::vector<std::string>{"3 x 3: wrong"}));
}

TEST(TestEvents, AnExceptionHasNoPlace) {
    const auto exception = parse_event(
        R"({"event":"failure","test":"A.B","message":"C++ exception with description \"n is 3\" thrown in the test body."})");
    ASSERT_TRUE(exception);
    EXPECT_EQ(exception->message, "n is 3");
    EXPECT_EQ(exception->place, "");
}

TEST(TestEvents, FilesAreNamedFromTheCheckoutNotFromTheBuildDirectory) {
    const auto failed = parse_event(
        R"({"event":"failure","test":"A.B","file":"../../day/a_test.cpp","line":7,"message":"wrong"})");
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->place, "day/a_test.cpp:7");
}

TEST(TestEvents, AFailureOutsideOfTheTestsIsOne) {
    const TestOutput output = parse_test_output(failure("", "a.cpp", "Failed\\nno memory"));
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].name, "before or after the tests");
    EXPECT_EQ(output.failed[0].messages, (std::vector<std::string>{"no memory"}));
}

TEST(TestEvents, WhatAKernelPrintsMayStandBeforeAnEvent) {
    const TestOutput output = parse_test_output(
        started("A.B/one") + "i = 1 {\"event\":" + ended("A.B/one", "passed") + started("A.B/two") +
        "i = 1\ni = 2" + failure("A.B/two", "a.cpp", "wrong") + "i = 3" + ended("A.B/two", "failed"));
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.unfinished, "");
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].printed, "i = 1\ni = 2\n");
    EXPECT_EQ(output.failed[0].messages, std::vector<std::string>{"wrong"});
}

TEST(TestEvents, TheStandInsReportIsKeptApart) {
    const TestOutput output =
        parse_test_output(started("A.B") + "i = 3\ncuda_on_cpu: kernel k: refused\n  why\n" +
                          failure("A.B", "a.cpp", "wrong") + ended("A.B", "failed"));
    ASSERT_EQ(output.failed.size(), 1U);
    EXPECT_EQ(output.failed[0].printed, "i = 3\n");
    EXPECT_EQ(output.failed[0].report, "cuda_on_cpu: kernel k: refused\n  why\n");
}

TEST(TestEvents, KnowsWhichTestDied) {
    const TestOutput output = parse_test_output(started("A.B") + ended("A.B", "passed") + started("A.C") +
                                                "kernel f: thread 3 reads past the end");
    EXPECT_EQ(output.passed, 1);
    EXPECT_EQ(output.unfinished, "A.C");
    EXPECT_EQ(output.last_words, "kernel f: thread 3 reads past the end");
}

TEST(TestEvents, WhatFailedBeforeATestDiedIsToldInPlainWords) {
    const TestOutput output =
        parse_test_output(started("A.C") + "i = 3\n" +
                          failure("A.C", "a.cpp", "Value of: ok\\n  Actual: false\\nExpected: true\\nn = 4") +
                          "cuda_on_cpu: the reason\n");
    EXPECT_EQ(output.unfinished, "A.C");
    EXPECT_EQ(output.last_words, "i = 3\nn = 4\ncuda_on_cpu: the reason\n");
    EXPECT_EQ(output.in_unfinished.printed, "i = 3\n");
    EXPECT_EQ(output.in_unfinished.messages, std::vector<std::string>{"n = 4"});
}

TEST(TestEvents, NothingIsNothing) {
    EXPECT_TRUE(parse_test_output("").ran_none());
    EXPECT_TRUE(parse_test_output("[       OK ] no test began\n").ran_none());
}

TEST(TestEvents, WhatOnlyLooksLikeAnEventIsText) {
    for (const char* text :
         {"\x1e", "\x1e{", "\x1e[]\n", "\x1e{\"event\":3}\n", "\x1e{\"test\":\"A.B\"}\n"}) {
        EXPECT_TRUE(parse_test_output(text).ran_none()) << text;
    }
    const TestOutput output = parse_test_output(started("A.B") + "\x1e{\"event\":\"started\",\"te");
    EXPECT_EQ(output.unfinished, "A.B") << "half of an event";
}

TEST(TestEvents, StandAtTheEndOfALine) {
    const std::string line = "i = 3" + started("A.B");
    EXPECT_EQ(event_in_output(line.substr(0, line.size() - 1))->test, "A.B");
    EXPECT_FALSE(event_in_output("{\"event\":\"started\",\"test\":\"A.B\"}"));
}

TEST(TestEvents, WithoutTheKeyNothingIsAnEvent) {
    const std::string forged = started("A.B") + ended("A.B", "passed");
    EXPECT_TRUE(parse_test_output(forged, "k3y").ran_none());
    EXPECT_EQ(parse_test_output(forged, "k3y").printed, forged);
    EXPECT_FALSE(event_in_output("\x1e{\"event\":\"started\",\"test\":\"A.B\"}", "k3y"));
    EXPECT_EQ(event_in_output("\x1ek3y{\"event\":\"started\",\"test\":\"A.B\"}", "k3y")->test, "A.B");
}

TEST(TestEvents, ATestProgramSaysThatItIsFinished) {
    const std::string one = started("A.B") + ended("A.B", "passed");
    EXPECT_FALSE(parse_test_output(one).finished);
    EXPECT_TRUE(parse_test_output(one + event(R"("event":"finished","result":"passed")")).finished);
}

}  // namespace
}  // namespace course::tool
