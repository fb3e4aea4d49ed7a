// The report of a test program in JSON Lines, which common/test/main.cpp writes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct TestEvent {
    std::string kind;     // "started", "failure", "ended", "finished": the whole program
    std::string test;     // empty: no test is running
    std::string result;   // of an end: "passed", "failed", "skipped"
    std::string message;  // of a failure, in plain words; otherwise the reason, or empty
    std::string place;    // of a failure: "day01_vector_add/vector_add_test.cpp:76"; empty for an exception

    // Does the event only repeat that a function has failed that has already reported its failure?
    bool is_repetition() const;
};

// Empty if the line is not an event, or is a part of one whose writer was killed.
std::optional<TestEvent> parse_event(std::string_view line);

// The event at the end of a line of a program's output, perhaps after output of the test. `key`:
// the program's COURSE_TEST_KEY; without it nothing is an event.
std::optional<TestEvent> event_in_output(std::string_view line, std::string_view key = "");

struct FailedTest {
    std::string name;
    std::string printed{};  // before the first failure, for example by printf in a kernel
    std::string report{};   // of the CPU stand-in: why it stopped a kernel; else empty
    // For each failure the message of the test. Its place is left out: a learner would look there
    // for the mistake.
    std::vector<std::string> messages{};
};

struct TestOutput {
    int passed = 0;
    int skipped = 0;
    std::vector<FailedTest> failed{};
    std::string unfinished{};  // the test that was running when the program ended; empty: it ended by itself
    std::string last_words{};  // output and failures of that test
    FailedTest in_unfinished{};  // the same, in parts
    std::string skip_reason{};   // of the first skipped test
    std::string printed{};       // the whole output, without the events
    bool finished = false;       // all tests that were chosen have run

    bool ran_none() const { return passed == 0 && skipped == 0 && failed.empty() && unfinished.empty(); }
};

// `output` of a program with COURSE_TEST_REPORT=- and this key, which may have crashed or been
// killed.
TestOutput parse_test_output(std::string_view output, std::string_view key = "");

}  // namespace course::tool
