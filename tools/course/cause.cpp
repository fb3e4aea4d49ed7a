#include "cause.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "text_file.hpp"

namespace course::tool {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        std::string_view line = next_line(text);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.emplace_back(line);
    }
    return lines;
}

// "Out-of-bounds  write" -> "out of bounds write"
std::string plain(std::string_view name) {
    std::string result;
    for (const char c : name) {
        const bool is_gap = c == ' ' || c == '\t' || c == '-';
        if (!is_gap)
            result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        else if (!result.empty() && result.back() != ' ')
            result += ' ';
    }
    if (result.ends_with(' ')) result.pop_back();
    return result;
}

// Without the blanks around it, and without any other of `dropped`.
std::string_view stripped(std::string_view text, std::string_view dropped = " \t\r") {
    const auto begin = text.find_first_not_of(dropped);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(dropped) - begin + 1);
}

// Takes `word` and the blanks behind it from the start of `text`; false: `text` starts otherwise.
bool take(std::string_view& text, std::string_view word) {
    const auto same = [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b); };
    if (text.size() < word.size() || !std::ranges::equal(text.substr(0, word.size()), word, same))
        return false;
    text = stripped(text.substr(word.size()));
    return true;
}

// "// Verdict: race, line 3" -> "race, line 3"; nothing if the line is no verdict. No std::regex,
// which overflows the stack on a long line.
std::optional<std::string_view> verdict_in(std::string_view line) {
    line = stripped(line);
    if (take(line, "//") && take(line, "verdict") && take(line, ":")) return line;
    return std::nullopt;
}

// "race, line 3." -> "race" and "3"; nothing if it has another form.
std::optional<std::pair<std::string, std::string>> cause_and_line(std::string_view verdict) {
    const auto comma = verdict.rfind(',');
    if (comma == std::string_view::npos) return std::nullopt;
    std::string_view place = stripped(verdict.substr(comma + 1));
    if (!take(place, "line ") && !take(place, "line\t")) return std::nullopt;
    place = stripped(place, " \t.");
    if (place.empty() || place.find_first_of(" \t.") != std::string_view::npos) return std::nullopt;
    return std::pair(std::string(stripped(verdict.substr(0, comma))), std::string(place));
}

// The numbers of the lines that contain `text`, counted from 1.
std::vector<int> lines_with(const std::vector<std::string>& lines, const std::string& text) {
    std::vector<int> found;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find(text) != std::string::npos) found.push_back(static_cast<int>(i + 1));
    }
    return found;
}

// 0: it is no number.
int number_in(const std::string& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

}  // namespace

std::vector<std::string> causes_of(const ExerciseSheet& sheet) {
    std::set<std::string> names;
    for (const Exercise& exercise : sheet.exercises) {
        for (const Cause& cause : exercise.causes)
            names.insert(cause.name);
    }
    return {names.begin(), names.end()};
}

CauseJudgement judge_cause(const Exercise& exercise, const ExerciseSheet& sheet, std::string_view given,
                           std::string_view mine) {
    if (exercise.causes.empty()) return {};
    const std::vector<std::string> causes = causes_of(sheet);
    const std::string choice = fmt::format("  The causes of this day: {}\n", fmt::join(causes, "; "));
    std::vector<std::string> verdicts;
    for (const std::string& line : lines_of(mine)) {
        if (verdict_in(line)) verdicts.push_back(line);
    }
    if (verdicts.size() != 1)
        return {"open", fmt::format("it has {} lines '// Verdict: CAUSE, line N'; expected one\n{}",
                                    verdicts.size(), choice)};
    const auto parts = cause_and_line(*verdict_in(verdicts.front()));
    if (!parts)
        return {"open",
                fmt::format("'{}'; expected '// Verdict: CAUSE, line N'\n{}", verdicts.front(), choice)};
    const auto& [name, place] = *parts;
    if (name == "?" || place == "?")
        return {"open", fmt::format("its verdict is still open: '{}'. Name the cause and the line before you "
                                    "repair anything.\n{}",
                                    verdicts.front(), choice)};
    if (std::ranges::find(causes, plain(name), plain) == causes.end())
        return {"unknown", fmt::format("'{}' is not a cause of this day\n{}", name, choice)};
    const std::vector<std::string> lines = lines_of(given);
    const int number = number_in(place);
    bool is_cause = false;
    for (const Cause& cause : exercise.causes) {
        if (plain(cause.name) != plain(name)) continue;
        is_cause = true;
        if (std::ranges::count(lines_with(lines, cause.text), number) > 0)
            return {"right", fmt::format("{}, line {}", cause.name, number)};
    }
    if (!is_cause) return {"wrong", fmt::format("the cause is not '{}'\n", name)};
    const bool exists = number >= 1 && number <= static_cast<int>(lines.size());
    return {"wrong line",
            exists
                ? fmt::format("the cause is right, the line is not. Line {} of the file as you got it:\n"
                              "      {}\n",
                              number, lines[static_cast<std::size_t>(number - 1)])
                : fmt::format("the cause is right, the line is not: '{}'; expected a number from 1 to {}\n",
                              place, lines.size())};
}

std::vector<std::string> mistakes_in_causes(const Exercise& exercise, const ExerciseSheet& sheet,
                                            std::string_view given, std::string_view solution) {
    if (exercise.causes.empty()) return {};
    std::vector<std::string> mistakes;
    const std::vector<std::string> lines = lines_of(given);
    for (const Cause& cause : exercise.causes) {
        const std::vector<int> found = lines_with(lines, cause.text);
        if (found.size() != 1)
            mistakes.push_back(fmt::format("'{}' of the cause '{}' is on {} lines of {}; expected one",
                                           cause.text, cause.name, found.size(), exercise.starts_from));
    }
    if (std::ranges::count(lines, kOpenVerdict) != 1)
        mistakes.push_back(fmt::format("{} has no line '{}'", exercise.starts_from, kOpenVerdict));
    const CauseJudgement own = judge_cause(exercise, sheet, given, solution);
    if (!own.is_right())
        mistakes.push_back(fmt::format("the verdict of {} is not right: {}", exercise.file, own.text));
    return mistakes;
}

}  // namespace course::tool
