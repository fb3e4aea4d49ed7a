#include "test_report.hpp"

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

}  // namespace

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
        }
    }
    return report;
}

}  // namespace course::tool
