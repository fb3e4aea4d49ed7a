#include "gtest_output.hpp"

#include <algorithm>

#include "gtest_phrases.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

// "[  FAILED  ] Suite.Test (3 ms)" or "[  FAILED  ] Suite.Test, where GetParam() = x (3 ms)" -> "Suite.Test"
std::string test_name(std::string_view line) {
    line.remove_prefix(std::min(line.find("] ") + 2, line.size()));
    return std::string(line.substr(0, line.find_first_of(" ,")));
}

// What EXPECT_TRUE(result.ok()) prints before what the test has to say.
bool is_frame(std::string_view line) {
    return line.starts_with("Value of: ") || line == "  Actual: false" || line == "Expected: true" ||
           line == "  Actual: true" || line == "Expected: false" || line == "Failed";
}

// "  Actual: false (what the assertion has to say" begins a message, whose last line ends with ")".
constexpr std::string_view kActual = "  Actual: false (";

// "/root/day/a_test.cpp:76: n = 3" of a trace -> "n = 3"
std::string_view trace_of(std::string_view line) {
    const auto place = line.find(": ");
    return place == std::string_view::npos ? line : line.substr(place + 2);
}

// What a kernel prints while it is checked: "[block 0, thread 3] i = 3".
bool is_of_kernel(std::string_view line) {
    return line.starts_with("[block ") && line.find("] ") != std::string_view::npos &&
           line.substr(0, line.find("] ")).find(", thread ") != std::string_view::npos;
}

// "file.cpp:76: Failure", then the message's lines; at last, from SCOPED_TRACE, in which case it
// failed.
std::string message_of(std::string_view lines) {
    const std::string_view place = next_line(lines);
    std::string message, frame;
    bool in_brackets = false;
    std::string trace;
    bool in_trace = false;
    while (!lines.empty()) {
        std::string_view line = next_line(lines);
        if (line == "Google Test trace:") {
            in_trace = true;
            continue;
        }
        if (is_of_kernel(line)) continue;  // "it printed" shows the first such lines
        if (in_trace && !line.empty()) {
            trace += (trace.empty() ? "in the case: " : ", ") + std::string(trace_of(line));
            continue;
        }
        if (line.starts_with(kActual)) {
            in_brackets = true;
            line.remove_prefix(kActual.size());
        } else if (in_brackets && line == "Expected: true") {
            in_brackets = false;
            if (message.ends_with(")\n")) message.erase(message.size() - 2, 1);
        }
        (is_frame(line) ? frame : message) += std::string(line) + "\n";
    }
    if (message.find_first_not_of(" \n") == std::string::npos) message = frame;
    while (message.ends_with('\n'))
        message.pop_back();
    std::string_view where = place.substr(0, place.rfind(": Failure"));
    // Ninja compiles in the build directory; a learner is in the checkout.
    while (where.starts_with("../"))
        where.remove_prefix(3);
    return in_plain_words(message) + (trace.empty() ? "" : "\n" + trace) +
           (where == "unknown file" ? "" : "\n(" + std::string(where) + ")");  // of an exception
}

// The failures in what one test printed; what else it printed is left out, and that a failure is
// one of a function that was called.
std::vector<std::string> messages_of(std::string_view output) {
    std::vector<std::string> messages;
    std::string current;
    const auto keep = [&] {
        if (current.empty() || current.find("generate new fatal failures") != std::string::npos) return;
        messages.push_back(message_of(current));
    };
    while (!output.empty()) {
        const std::string_view line = next_line(output);
        if (line.ends_with(": Failure")) {
            keep();
            current = std::string(line) + "\n";
        } else if (!current.empty()) {
            current += std::string(line) + "\n";
        }
    }
    keep();
    return messages;
}

// What came before the first failure: the program's own words, and from "cuda_on_cpu: kernel ..."
// on the stand-in's.
void take_words(std::string_view output, FailedTest& test) {
    while (!output.empty()) {
        const std::string_view line = next_line(output);
        if (line.ends_with(": Failure")) break;
        const bool is_report = !test.report.empty() || line.starts_with("cuda_on_cpu: ");
        (is_report ? test.report : test.printed) += std::string(line) + "\n";
    }
}

// What a test printed that did not come to its end: its own words, then what had failed until then.
std::string words_of_unfinished(const FailedTest& test) {
    std::string words = test.printed + test.report;
    for (const std::string& message : test.messages)
        words += message + "\n";
    return words;
}

// "[       OK ] Suite.Test (0 ms)" of the test that runs, which may follow what a kernel printed without an end of line.
// npos: the line is something else.
std::size_t find_result(std::string_view line, std::string_view test) {
    for (const std::string_view mark : {"[       OK ] ", "[  SKIPPED ] ", "[  FAILED  ] "}) {
        const auto place = line.rfind(mark);
        if (place != std::string_view::npos && line.substr(place + mark.size()).starts_with(test))
            return place;
    }
    return std::string_view::npos;
}

}  // namespace

GtestOutput parse_gtest_output(std::string_view output) {
    GtestOutput result;
    while (!output.empty()) {
        std::string_view line = next_line(output);
        if (line.starts_with("[ RUN      ] ")) {
            result.unfinished = test_name(line);
            result.last_words.clear();
            continue;
        }
        if (result.unfinished.empty()) continue;  // before, between and after the tests
        const auto end = find_result(line, result.unfinished);
        if (end != 0) result.last_words += std::string(line.substr(0, end)) + "\n";
        if (end == std::string_view::npos) continue;
        line.remove_prefix(end);
        if (line.starts_with("[       OK ] ")) {
            ++result.passed;
        } else if (line.starts_with("[  SKIPPED ] ")) {
            ++result.skipped;
            std::string_view words = result.last_words;
            while (!words.empty() && result.skip_reason.empty()) {
                if (next_line(words).ends_with(": Skipped")) result.skip_reason = next_line(words);
            }
        } else {
            result.failed.push_back({.name = result.unfinished, .messages = messages_of(result.last_words)});
            take_words(result.last_words, result.failed.back());
        }
        result.unfinished.clear();
    }
    if (!result.unfinished.empty()) {
        result.in_unfinished = {.name = result.unfinished, .messages = messages_of(result.last_words)};
        take_words(result.last_words, result.in_unfinished);
        result.last_words = words_of_unfinished(result.in_unfinished);
    }
    return result;
}

}  // namespace course::tool
