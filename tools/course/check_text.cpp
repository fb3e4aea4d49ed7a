#include "check_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "styles.hpp"

namespace course::tool {
namespace {

constexpr std::size_t kLinesShown = 12;  // of each message

std::string indented(std::string_view text, std::size_t lines, const std::string& root) {
    std::string result;
    std::size_t shown = 0;
    std::size_t times = 1;
    while (!text.empty()) {
        std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!line.empty() && text.substr(0, text.find('\n')) == line) {
            ++times;
            continue;
        }
        if (times > 1) line += fmt::format(" ({} times)", std::exchange(times, 1));
        if (shown++ == lines) return result + "    ...\n";
        for (auto at = line.find(root + "/"); at != std::string::npos; at = line.find(root + "/"))
            line.erase(at, root.size() + 1);
        result += line.empty() ? "\n" : "    " + line + "\n";
    }
    return result;
}

// The last lines of a program's output, which usually contain the reason why it died.
std::string_view last_lines(std::string_view text, std::size_t count) {
    while (text.ends_with('\n'))
        text.remove_suffix(1);
    std::size_t begin = text.size();
    while (count-- > 0 && begin != std::string_view::npos && begin > 0)
        begin = text.rfind('\n', begin - 1);
    return begin == std::string_view::npos ? text : text.substr(begin);
}

std::string text_of_failure(const FailedTest& test, std::size_t shown, const std::string& root) {
    std::string text;
    if (!test.printed.empty()) text += "    it printed:\n" + indented(test.printed, kLinesShown, root);
    text += indented(test.report, kLinesShown, root);
    for (std::size_t i = 0; i < std::min(shown, test.messages.size()); ++i)
        text += indented(test.messages[i], kLinesShown, root);
    if (test.messages.size() > shown)
        text += test.messages.size() == shown + 1
                    ? "    ... and 1 more check fails\n"
                    : fmt::format("    ... and {} more checks fail\n", test.messages.size() - shown);
    return text;
}

bool is_error(std::string_view line) {
    return line.find(": error: ") != std::string_view::npos ||
           line.find(": fatal error: ") != std::string_view::npos;
}

// Headers in which an error of the learner's file (such as an open brace) may be reported, but
// which are not themselves wrong.
bool is_in_system_header(std::string_view line) {
    return line.starts_with("/usr/") ||
           line.substr(0, line.find(": ")).find("cuda_on_cpu/include/") != std::string_view::npos;
}

// Removes the "In file included from a.cu:3:" lines of an error that is left out.
std::string without_prelude(std::string errors) {
    const auto last = errors.rfind("\nIn file included from ");
    if (last == std::string::npos) return errors;
    return errors.find(": error: ", last) == std::string::npos ? errors.substr(0, last + 1) : errors;
}

}  // namespace

std::string text_of_failures(const TestOutput& output, std::size_t shown, const std::string& root) {
    if (output.failed.empty()) return "";
    const FailedTest& test = output.failed.front();
    return fmt::format("\n  {}\n", styled(test.name, kBad, stdout)) + text_of_failure(test, shown, root);
}

std::string text_of_end(const TestOutput& output, const Captured& run, const EndOfRun& end,
                        const std::string& root) {
    const std::string test = output.unfinished.empty() ? "the tests" : output.unfinished;
    const std::string& last_words = output.unfinished.empty() ? output.printed : output.last_words;
    std::string what;
    if (run.timed_out) {
        what = fmt::format(
            "{}: not done after {} s, ended{}. A loop that never ends, a thread that waits for ever, or does "
            "each thread do all the work? --limit S gives it more time.",
            test, end.limit.count() / 1000, end.slow_place.empty() ? "" : "; it was in " + end.slow_place);
    } else if (run.flooded) {
        what = fmt::format(
            "{}: printed more than {} MB, ended. A loop that never ends, or does each of many threads print? "
            "Let a "
            "few print: if (i < 3) printf(...)",
            test, kMostOutput >> 20);
    } else if (run.exit_code > 128) {
        const int signal = run.exit_code - 128;
        what = fmt::format("{}: the program ended by signal {}.", test, signal);
        if (signal == SIGSEGV && last_words.find("cuda_on_cpu: code of the host") == std::string::npos)
            what +=
                " An address that does not exist: is an index far out of range, or was a pointer overwritten "
                "by one?";
    } else {
        what = fmt::format("{}: the program ended in the middle of {}, with exit code {}.", test,
                           output.unfinished.empty() ? "them" : "it", run.exit_code);
    }
    // With too much output, the beginning is more useful, because it shows what the test does.
    if (run.flooded) {
        return fmt::format("\n  {}\n{}", styled(what, kBad, stdout),
                           text_of_failure(output.in_unfinished, end.failures_shown, root));
    }
    return fmt::format("\n  {}\n{}", styled(what, kBad, stdout),
                       indented(last_lines(last_words, kLinesShown), kLinesShown, root));
}

std::string text_of_errors(std::string_view messages, const std::string& root) {
    constexpr std::size_t kErrorLines = 30;
    std::string errors;
    bool is_command = false;
    bool has_error = false;
    while (!messages.empty()) {
        const std::string_view line = messages.substr(0, messages.find('\n'));
        messages.remove_prefix(std::min(line.size() + 1, messages.size()));
        const bool is_head = line.starts_with("FAILED: ");
        if (is_error(line)) {
            if (has_error && is_in_system_header(line)) {
                errors = without_prelude(errors) + "... and more, which may follow from these\n";
                break;
            }
            has_error = true;
        }
        // g++ mentions unknown flags of clang++ only if it reports something else, too.
        const bool is_about_flags = line.find("unrecognized command-line option") != std::string_view::npos ||
                                    line.ends_with("At global scope:");
        // On the CPU the body of a kernel is a lambda.
        const bool is_about_translation = line.ends_with("In lambda function:");
        if (!is_head && !is_command && !is_about_flags && !is_about_translation &&
            !line.starts_with("ninja: "))
            errors += std::string(line) + "\n";
        is_command = is_head;
    }
    return indented(errors, kErrorLines, root);
}

}  // namespace course::tool
