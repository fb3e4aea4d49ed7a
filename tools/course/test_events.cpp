#include "test_events.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "gtest_phrases.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

std::string before_event(std::string_view key) {
    return '\x1e' + std::string(key);
}

// Output of a program may look like an event, so the types of values must be checked.
std::string text_of(const nlohmann::json& event, const char* key) {
    const auto value = event.find(key);
    return value != event.end() && value->is_string() ? value->get<std::string>() : "";
}

std::string place_of(const nlohmann::json& failure) {
    std::string file = text_of(failure, "file");
    // Ninja compiles in the build directory, but a learner works in the checkout.
    while (file.starts_with("../"))
        file.erase(0, 3);
    const auto line = failure.find("line");
    if (file.empty() || line == failure.end()) return file;
    return file + ":" + line->dump();
}

// "day/a_test.cpp:46: cudaMalloc(): ..." -> "cudaMalloc(): ...": an exception of a call that a test
// made names the test's line.
std::string without_test_place(const std::string& message) {
    static const std::regex kPlace(R"(^\S*(_test\.(cpp|cu)|common/(test|check|device)/[^\s:]+):\d+: )");
    return std::regex_replace(message, kPlace, "", std::regex_constants::format_first_only);
}

// Output from "cuda_on_cpu: kernel ..." on comes from the stand-in.
void take_words(std::string_view printed, FailedTest& test) {
    while (!printed.empty()) {
        const std::string_view line = next_line(printed);
        const bool is_report = !test.report.empty() || line.starts_with("cuda_on_cpu: ");
        (is_report ? test.report : test.printed) += std::string(line) + "\n";
    }
}

// Processes the events and the output between them.
class Reader {
  public:
    void take_text(std::string_view text) {
        result_.printed += text;
        if (result_.unfinished.empty()) return;  // before, between and after the tests
        result_.last_words += text;
        if (test_.messages.empty()) before_failure_ += text;
    }

    void take(const TestEvent& event) {
        if (event.kind == "started") {
            result_.unfinished = event.test;
            result_.last_words.clear();
            before_failure_.clear();
            test_ = {.name = event.test};
        } else if (event.kind == "failure") {
            take_failure(event);
        } else if (event.kind == "ended") {
            end(event);
        } else if (event.kind == "finished") {
            result_.finished = true;
        }
    }

    TestOutput result() {
        if (!result_.unfinished.empty()) {
            take_words(before_failure_, test_);
            result_.in_unfinished = test_;
        }
        return result_;
    }

  private:
    void take_failure(const TestEvent& event) {
        if (event.is_repetition()) return;
        const std::string message = without_test_place(event.message);
        if (event.test.empty()) {  // of code that the tests share
            result_.failed.push_back({.name = "before or after the tests", .messages = {message}});
            return;
        }
        test_.messages.push_back(message);
        end_line(result_.last_words);
        result_.last_words += message + "\n";
    }

    void end(const TestEvent& event) {
        if (event.result == "passed") {
            ++result_.passed;
        } else if (event.result == "skipped") {
            ++result_.skipped;
            if (result_.skip_reason.empty()) result_.skip_reason = event.message;
        } else {
            take_words(before_failure_, test_);
            result_.failed.push_back(test_);
        }
        result_.unfinished.clear();
    }

    static void end_line(std::string& text) {
        if (!text.empty() && !text.ends_with('\n')) text += '\n';
    }

    TestOutput result_;
    FailedTest test_;             // the running test
    std::string before_failure_;  // its output before the first failure
};

}  // namespace

bool TestEvent::is_repetition() const {
    return message.find("generate new fatal failures") != std::string::npos;
}

std::optional<TestEvent> parse_event(std::string_view line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || text_of(json, "event").empty()) return std::nullopt;
    TestEvent event{.kind = text_of(json, "event"),
                    .test = text_of(json, "test"),
                    .result = text_of(json, "result"),
                    .message = text_of(json, "message"),
                    .place = place_of(json)};
    if (event.kind == "failure") event.message = in_plain_words(event.message);
    return event;
}

std::optional<TestEvent> event_in_output(std::string_view line, std::string_view key) {
    const std::string before = before_event(key);
    const auto begin = line.rfind(before);
    return begin == line.npos ? std::nullopt : parse_event(line.substr(begin + before.size()));
}

TestOutput parse_test_output(std::string_view output, std::string_view key) {
    const std::string before = before_event(key);
    Reader reader;
    while (!output.empty()) {
        const std::string_view text = output.substr(0, output.find(before));
        reader.take_text(text);
        output.remove_prefix(text.size());
        if (output.empty()) break;
        output.remove_prefix(before.size());
        const std::string_view line = output.substr(0, output.find('\n'));
        if (const auto event = parse_event(line)) {
            reader.take(*event);
            output.remove_prefix(std::min(line.size() + 1, output.size()));
        }
    }
    return reader.result();
}

}  // namespace course::tool
