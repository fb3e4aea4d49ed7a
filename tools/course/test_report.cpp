#include "test_report.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace course::tool {
namespace {

// The text between `begin` and the next `end`, or nothing.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
    const auto start = text.find(begin);
    if (start == std::string_view::npos) return {};
    text.remove_prefix(start + begin.size());
    return text.substr(0, text.find(end));
}

std::string unescaped(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
    std::string plain;
    while (!text.empty()) {
        char character = text.front();
        std::size_t length = 1;
        for (const auto& [entity, meaning] : kEntities) {
            if (text.starts_with(entity)) {
                character = meaning;
                length = entity.size();
                break;
            }
        }
        plain += character;
        text.remove_prefix(length);
    }
    return plain;
}

// GoogleTest prints "file:line: Skipped", then what was streamed into GTEST_SKIP().
std::string skip_reason(std::string_view output) {
    const std::string reason = unescaped(between(output, ": Skipped\n", "\n"));
    return reason.empty() ? "no reason given" : reason;
}

// From GoogleTest's "file:line: Failure" on, a few lines; of other output its end.
std::string failure_message(std::string_view output) {
    constexpr int kLines = 8;
    std::size_t begin = output.find(": Failure\n");
    if (begin == std::string_view::npos)
        return unescaped(output.substr(output.size() - std::min<std::size_t>(output.size(), 400)));
    begin = output.rfind('\n', begin) + 1;  // npos + 1 is 0
    std::size_t end = begin;
    for (int line = 0; line < kLines && end < output.size(); ++line) {
        if (line > 0 && output.substr(end).starts_with("[")) break;  // GoogleTest again
        end = std::min(output.find('\n', end), output.size() - 1) + 1;
    }
    return unescaped(output.substr(begin, end - begin));
}

}  // namespace

std::string TestFailure::command() const {
    const auto dot = name.find('.');
    if (dot == std::string::npos) return name;
    const std::string program = name.substr(0, dot);
    std::string filter = name.substr(dot + 1, name.find("  #") - dot - 1);
    constexpr std::string_view kDescending = "descending.";
    const bool descending = filter.starts_with(kDescending);
    if (descending) filter.erase(0, kDescending.size());
    return std::string(descending ? "CUDA_ON_CPU_ORDER=descending " : "") + program +
           " --gtest_filter=" + filter;
}

TestReport parse_test_report(std::string_view junit) {
    constexpr std::string_view kBegin = "<testcase ";
    TestReport report;
    for (auto at = junit.find(kBegin); at != std::string_view::npos; at = junit.find(kBegin)) {
        junit.remove_prefix(at + kBegin.size());
        const std::string_view test = junit.substr(0, junit.find("</testcase>"));
        const std::string_view status = between(test, "status=\"", "\"");
        if (status == "run") {
            ++report.passed;
        } else if (status == "disabled") {
            ++report.skipped;
            ++report.skip_reasons["disabled"];
        } else if (status == "notrun" && test.find("<skipped message=\"SKIP_") != std::string_view::npos) {
            ++report.skipped;
            ++report.skip_reasons[skip_reason(test)];
        } else {
            ++report.failed;  // also what could not be started
            report.failures.push_back({unescaped(between(test, "name=\"", "\"")),
                                       failure_message(between(test, "<system-out>", "</system-out>"))});
        }
    }
    return report;
}

}  // namespace course::tool
