#include "gtest_output.hpp"

#include <algorithm>

namespace course::tool {
namespace {

std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

// "[  FAILED  ] Suite.Test (3 ms)" or "[  FAILED  ] Suite.Test, where GetParam() = x (3 ms)" -> "Suite.Test"
std::string test_name(std::string_view line) {
    line.remove_prefix(std::min(line.find("] ") + 2, line.size()));
    return std::string(line.substr(0, line.find_first_of(" ,")));
}

// What EXPECT_TRUE(result.ok()) prints before what the test has to say.
bool is_frame(std::string_view line) {
    return line.starts_with("Value of: ") || line == "  Actual: false" || line == "Expected: true" ||
           line == "  Actual: true" || line == "Expected: false";
}

// "file.cpp:76: Failure", then the message's lines.
std::string message_of(std::string_view lines) {
    const std::string_view place = next_line(lines);
    std::string message, frame;
    while (!lines.empty()) {
        const std::string_view line = next_line(lines);
        (is_frame(line) ? frame : message) += std::string(line) + "\n";
    }
    if (message.find_first_not_of(" \n") == std::string::npos) message = frame;
    while (message.ends_with('\n'))
        message.pop_back();
    return message + "\n(" + std::string(place.substr(0, place.rfind(": Failure"))) + ")";
}

// The failures in what one test printed; what else it printed is left out.
std::vector<std::string> messages_of(std::string_view output) {
    std::vector<std::string> messages;
    std::string current;
    while (!output.empty()) {
        const std::string_view line = next_line(output);
        if (line.ends_with(": Failure")) {
            if (!current.empty()) messages.push_back(message_of(current));
            current = std::string(line) + "\n";
        } else if (!current.empty()) {
            current += std::string(line) + "\n";
        }
    }
    if (!current.empty()) messages.push_back(message_of(current));
    return messages;
}

// From "cuda_on_cpu: kernel ..." to the failure that it led to.
std::string report_of(std::string_view output) {
    std::string report;
    while (!output.empty()) {
        const std::string_view line = next_line(output);
        if (line.ends_with(": Failure")) break;
        if (!report.empty() || line.starts_with("cuda_on_cpu: ")) report += std::string(line) + "\n";
    }
    return report;
}

}  // namespace

GtestOutput parse_gtest_output(std::string_view output) {
    GtestOutput result;
    while (!output.empty()) {
        const std::string_view line = next_line(output);
        if (line.starts_with("[ RUN      ] ")) {
            result.unfinished = test_name(line);
            result.last_words.clear();
        } else if (result.unfinished.empty()) {
            continue;  // before, between and after the tests
        } else if (line.starts_with("[       OK ] ")) {
            ++result.passed;
            result.unfinished.clear();
        } else if (line.starts_with("[  SKIPPED ] ")) {
            ++result.skipped;
            std::string_view words = result.last_words;
            while (!words.empty() && result.skip_reason.empty()) {
                if (next_line(words).ends_with(": Skipped")) result.skip_reason = next_line(words);
            }
            result.unfinished.clear();
        } else if (line.starts_with("[  FAILED  ] ")) {
            result.failed.push_back(
                {result.unfinished, report_of(result.last_words), messages_of(result.last_words)});
            result.unfinished.clear();
        } else {
            result.last_words += std::string(line) + "\n";
        }
    }
    return result;
}

}  // namespace course::tool
