#include "test_report.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace course::tool {
namespace {

constexpr int kLines = 8;  // of a failure

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

// Of a program without report: from GoogleTest's "file:line: Failure" on, a few lines; of other
// output its end.
std::string failure_message(std::string_view output) {
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

std::string first_lines(std::string_view message) {
    std::size_t end = 0;
    for (int line = 0; line < kLines && end < message.size(); ++line)
        end = std::min(message.find('\n', end), message.size() - 1) + 1;
    return std::string(message.substr(0, end)) + (end > 0 && message[end - 1] == '\n' ? "" : "\n");
}

// What a program says of one test.
void count(TestReport& report, const std::string& name, const std::string& result,
           const std::string& message) {
    if (result == "passed") {
        ++report.passed;
    } else if (result == "skipped") {
        ++report.skipped;
        const std::string reason = message.substr(0, message.find('\n'));
        ++report.skip_reasons[reason.empty() ? "no reason given" : reason];
    } else {
        ++report.failed;
        report.failures.push_back({name, first_lines(message)});
    }
}

// Adds the tests of one part of a program: `part` is "day15_reduction_test.descending.1of2".
void add_program(TestReport& report, const std::string& part, std::istream& lines) {
    const std::string prefix = part.substr(0, part.rfind('.') + 1);
    std::string running;
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line, nullptr, false);
        if (event.is_discarded()) break;  // its writer was ended in the middle
        const std::string test = event.at("test");
        if (event.at("event") == "started") {
            running = test;
        } else {
            running.clear();
            count(report, prefix + test, event.at("result"), event.value("message", ""));
        }
    }
    if (!running.empty()) count(report, prefix + running, "failed", "was running when the program was ended");
}

}  // namespace

std::string TestFailure::command() const {
    const auto dot = std::min(name.find('.'), name.size());
    const std::string program = name.substr(0, dot);
    std::string filter = name.substr(std::min(dot + 1, name.size()));
    constexpr std::string_view kDescending = "descending";
    const bool descending = filter == kDescending || filter.starts_with(std::string(kDescending) + ".");
    if (descending) filter.erase(0, kDescending.size() + 1);
    return std::string(descending ? "CUDA_ON_CPU_ORDER=descending " : "") + program +
           (filter.empty() ? "" : " --gtest_filter=" + filter);
}

TestReport parse_test_report(std::string_view junit, const std::filesystem::path& reports) {
    constexpr std::string_view kBegin = "<testcase ";
    TestReport report;
    for (auto at = junit.find(kBegin); at != std::string_view::npos; at = junit.find(kBegin)) {
        junit.remove_prefix(at + kBegin.size());
        const std::string_view test = junit.substr(0, junit.find("</testcase>"));
        const std::string_view status = between(test, "status=\"", "\"");
        const std::string name = unescaped(between(test, "name=\"", "\""));
        const std::string_view output = between(test, "<system-out>", "</system-out>");
        const int failed_before = report.failed;
        std::ifstream program(reports / (name + ".jsonl"));
        const bool is_program = program.is_open();
        if (is_program) add_program(report, name, program);

        if (status == "run") {
            if (!is_program) ++report.passed;
        } else if (status == "disabled") {
            count(report, name, "skipped", "disabled");
        } else if (status == "notrun" && test.find("<skipped message=\"SKIP_") != std::string_view::npos) {
            count(report, name, "skipped", skip_reason(test));
        } else if (report.failed == failed_before) {  // also what could not be started
            count(report, is_program ? name.substr(0, name.rfind('.')) : name, "failed",
                  failure_message(output));
        }
    }
    return report;
}

}  // namespace course::tool
