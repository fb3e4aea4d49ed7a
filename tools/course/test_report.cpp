#include "test_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "subprocess.hpp"
#include "test_events.hpp"

namespace course::tool {
namespace {

// Is the part a shard of all tests of a program, which ctest starts with no settings except the
// order? "day15_reduction_test.descending.1of2".
bool is_shard(const std::string& part) {
    static const std::regex kShard(R"([^.]*(\.descending)?\.\d+of\d+)");
    return std::regex_match(part, kShard);
}

std::string first_lines(std::string_view message) {
    constexpr int kLines = 8;
    std::size_t end = 0;
    for (int line = 0; line < kLines && end < message.size(); ++line)
        end = std::min(message.find('\n', end), message.size() - 1) + 1;
    return std::string(message.substr(0, end)) + (end > 0 && message[end - 1] == '\n' ? "" : "\n");
}

// Adds the report of one part.
class PartReader {
  public:
    PartReader(TestReport& report, const std::string& part)
        : report_(report), part_(part), program_(is_shard(part) ? part.substr(0, part.rfind('.')) : part) {}

    void take(const TestEvent& event) {
        if (event.kind == "started") {
            is_running_ = true;
            running_ = event.test;
            first_failure_.clear();
        } else if (event.kind == "failure") {
            if (event.test.empty()) {  // of code that tests share
                if (failure_of_suite_.empty()) failure_of_suite_ = event.message;
            } else if (first_failure_.empty() && !event.is_repetition())
                first_failure_ = (event.place.empty() ? "" : event.place + ": ") + event.message;
        } else if (event.kind == "ended") {
            is_running_ = false;
            end(event);
        } else if (event.kind == "finished") {
            is_finished_ = true;
            if (event.result == "failed" && !any_failed_)
                fail(program_, failure_of_suite_.empty() ? event.message : failure_of_suite_);
        }
    }

    void end_of_report() {
        if (is_running_) {
            fail(name_of(running_), "was running when the program was ended");
        } else if (!is_finished_ && !any_failed_) {
            fail(program_, "was ended before its last test");
        }
    }

    void fail(const std::string& name, const std::string& message) {
        any_failed_ = true;
        ++report_.failed;
        report_.failures.push_back({name, first_lines(message), part_});
    }

    const std::string& program() const { return program_; }

  private:
    std::string name_of(const std::string& test) const {
        return test.empty() ? program_ : program_ + "." + test;
    }

    void end(const TestEvent& event) {
        if (event.result == "passed") {
            ++report_.passed;
        } else if (event.result == "skipped") {
            ++report_.skipped;
            const std::string reason = event.message.substr(0, event.message.find('\n'));
            report_.skipped_tests[reason.empty() ? "no reason given" : reason].push_back(name_of(event.test));
        } else {
            fail(name_of(event.test), event.message.empty() ? first_failure_ : event.message);
        }
    }

    TestReport& report_;
    const std::string part_;
    const std::string program_;
    std::string running_;
    std::string first_failure_;
    std::string failure_of_suite_;
    bool is_running_ = false;
    bool is_finished_ = false;
    bool any_failed_ = false;
};

}  // namespace

std::string lines_about(const SkippedTests& tests) {
    constexpr std::size_t kNamed = 2;
    std::string lines;
    for (const auto& [reason, names] : tests) {
        const std::size_t named = std::min(kNamed, names.size());
        lines +=
            fmt::format("skipped {}: {} ({}{})\n", names.size(), reason,
                        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                        names.size() > named ? fmt::format(" and {} more", names.size() - named) : "");
    }
    return lines;
}

std::string TestFailure::command() const {
    if (!is_shard(part)) {
        const std::string pattern = std::regex_replace(part, std::regex(R"([.+*?()|\[\]])"), R"(\$&)");
        return shell_quoted({"ctest", "--test-dir", "..", "--tests-regex", "^" + pattern + "$"});
    }
    const auto dot = std::min(name.find('.'), name.size());
    const std::string program = name.substr(0, dot);
    std::string filter = name.substr(std::min(dot + 1, name.size()));
    constexpr std::string_view kDescending = "descending";
    const bool descending = filter == kDescending || filter.starts_with(std::string(kDescending) + ".");
    if (descending) filter.erase(0, kDescending.size() + 1);
    return std::string(descending ? "CUDA_ON_CPU_ORDER=descending " : "") + program +
           (filter.empty() ? "" : " --gtest_filter=" + filter);
}

TestReport parse_test_reports(const std::vector<std::string>& parts, const std::filesystem::path& reports) {
    TestReport report;
    for (const std::string& part : parts) {
        PartReader reader(report, part);
        std::ifstream lines(reports / (part + ".jsonl"));
        if (!lines.is_open()) {
            reader.fail(reader.program(), "has reported nothing");
            continue;
        }
        for (std::string line; std::getline(lines, line);) {
            if (const auto event = parse_event(line)) reader.take(*event);
        }
        reader.end_of_report();
    }
    return report;
}

}  // namespace course::tool
