// What a test program says of its tests, in JSON Lines: common/test/main.cpp writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct TestEvent {
    std::string kind;     // "started", "failure", "ended", "finished": the whole program
    std::string test;     // empty: none runs
    std::string result;   // of what ended: "passed", "failed", "skipped"
    std::string message;  // of a failure in plain words; else why, or empty
    std::string place;    // of a failure: "day01_vector_add/vector_add_test.cpp:76"; of an exception empty

    // Does it only repeat that a function, which has told of a failure, has failed?
    bool is_repetition() const;
};

// Nothing: that is no event, or half of one whose writer was ended.
std::optional<TestEvent> parse_event(std::string_view line);

// The event at the end of a line of a program's output, perhaps after what the test printed.
std::optional<TestEvent> event_in_output(std::string_view line);

struct FailedTest {
    std::string name;
    std::string printed{};  // before the first failure: by a kernel's printf, say
    std::string report{};   // of the CPU stand-in: why it refused a kernel; else empty
    // Of its failures: what the test said, and where the check stands.
    std::vector<std::string> messages{};
};

struct TestOutput {
    int passed = 0;
    int skipped = 0;
    std::vector<FailedTest> failed{};
    std::string unfinished{};  // the test that was running when the program ended; empty: it ended by itself
    std::string last_words{};  // what was printed and what failed in that test
    FailedTest in_unfinished{};  // the same, taken apart
    std::string skip_reason{};   // of the first that was skipped
    std::string printed{};       // all that was, without the events

    bool ran_none() const { return passed == 0 && skipped == 0 && failed.empty() && unfinished.empty(); }
};

// `output` of a program with COURSE_TEST_REPORT=-, which may have crashed or been ended.
TestOutput parse_test_output(std::string_view output);

}  // namespace course::tool
