// What a GoogleTest program said of its tests, read from what it printed: that is all there is when
// it crashed or was ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct FailedTest {
    std::string name;
    std::string printed{};  // before the first failure: by a kernel's printf, say
    std::string report{};   // of the CPU stand-in: why it refused a kernel; else empty
    // Of its failures: what the test said, without GoogleTest's frame, and where the check stands.
    std::vector<std::string> messages{};
};

struct GtestOutput {
    int passed = 0;
    int skipped = 0;
    std::vector<FailedTest> failed;
    std::string unfinished;  // the test that was running when the program ended; empty: it ended by itself
    std::string last_words;  // what was printed in that test
    FailedTest in_unfinished{};  // the same, taken apart
    std::string skip_reason;     // of the first that was skipped

    bool ran_none() const { return passed == 0 && skipped == 0 && failed.empty() && unfinished.empty(); }
};

GtestOutput parse_gtest_output(std::string_view output);

}  // namespace course::tool
