#include "questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>

#include "functions.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

constexpr std::string_view kSection = "## Predict";
constexpr std::string_view kDetails = "<details><summary>Answer</summary>";
constexpr std::string_view kEndOfDetails = "</details>";
constexpr std::string_view kBold = "**";
constexpr std::string_view kAbout = "about ";
constexpr std::string_view kLine = "line ";

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// The number that `text` begins with, if a unit follows it or nothing: "1,024 threads", "0.5",
// ".5". Commas separate thousands; a single comma elsewhere is a decimal point. Not "1/2", nor
// "2^10".
std::optional<double> number_in(std::string_view text) {
    static const std::regex kThousands(R"([-+]?\d{1,3}(?:,\d{3})+(?![\d,]))");
    static const std::regex kNumber(R"([-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?)");
    std::string digits(text.substr(0, 64));
    std::smatch match;
    if (std::regex_search(digits, match, kThousands, std::regex_constants::match_continuous))
        digits.erase(std::remove(digits.begin(), digits.begin() + match.length(), ','),
                     digits.begin() + match.length());
    if (!std::regex_search(digits, match, kNumber, std::regex_constants::match_continuous))
        return std::nullopt;
    std::string number = match.str();
    static const std::regex kMore(R"(\s*(?:[\^*/]|[-+.,x]?\s*\d))");  // "10-20", "8 x 8"
    if (std::regex_search(match.suffix().first, digits.cend(), kMore, std::regex_constants::match_continuous))
        return std::nullopt;
    std::ranges::replace(number, ',', '.');
    return std::strtod(number.c_str(), nullptr);
}

// The unit of time or of memory behind the number that `text` begins with; empty: none. "GB", "gb"
// and "GiB" are one unit, as are "us" and "µs".
std::string unit_in(std::string_view text) {
    static const std::regex kUnit(
        R"([-+.,\d]*(?:e[-+]?\d+)?\s*(n|u|\xc2\xb5|\xce\xbc|m|k|M|G|T)?(s|i?b|bytes?)(?![a-z]).*)",
        std::regex_constants::icase);
    const std::string line(text.substr(0, std::min<std::size_t>(64, text.find('\n'))));
    std::smatch match;
    if (!std::regex_match(line, match, kUnit)) return "";
    const auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
    const bool is_time = lower(match.str(2).front()) == 's';
    const std::string prefix = match.str(1);
    return std::string(1, prefix.size() > 1 ? 'u'
                          : prefix.empty()  ? ' '
                                            : lower(prefix.front())) +
           (is_time ? 's' : 'b');
}

bool is_letter(std::string_view key) {
    return key.size() == 1 && std::isalpha(static_cast<unsigned char>(key[0])) != 0;
}

// "`sum += in[i];`"
bool is_code(std::string_view key) {
    return key.size() > 2 && key.starts_with('`') && key.ends_with('`');
}

// Reads the lines of the section, one question after the other.
class Parser {
  public:
    explicit Parser(std::string_view file) : file_(file) {}

    void take(std::string_view line, int number) {
        line_ = number;
        const auto digits = line.find_first_not_of("0123456789");
        if (digits != 0 && digits != std::string_view::npos && line.substr(digits).starts_with(". ")) {
            finish();
            begun_at_ = number;
            line.remove_prefix(digits + 2);
        } else if (begun_at_ == 0) {
            if (!trimmed(line).empty()) fail("expected '1. question' first");
            return;
        }
        text_ += std::string(trimmed(line)) + "\n";
    }

    std::vector<Question> result() {
        finish();
        if (questions_.empty()) fail("there is no question; expected '1. question'");
        return std::move(questions_);
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw QuestionError(fmt::format("{}:{}: {}", file_, line_, what));
    }

    void finish() {
        if (begun_at_ == 0) return;
        const std::string_view text = text_;
        const auto open = text.find(kDetails);
        const auto close = text.find(kEndOfDetails);
        if (open == std::string_view::npos || close == std::string_view::npos || close < open)
            fail(fmt::format("expected {}**key**. why{} behind the question", kDetails, kEndOfDetails));
        if (!trimmed(text.substr(close + kEndOfDetails.size())).empty())
            fail("there is text behind the answer");
        std::string_view answer =
            trimmed(text.substr(open + kDetails.size(), close - open - kDetails.size()));
        const auto end =
            answer.starts_with(kBold) ? answer.find(kBold, kBold.size()) : std::string_view::npos;
        if (end == std::string_view::npos) fail("the answer has no key; expected **key** first");
        const std::string_view key = trimmed(answer.substr(kBold.size(), end - kBold.size()));
        const std::string question(trimmed(text.substr(0, open)));
        static const std::regex kFunction(R"(\[`(\w+)`\]\(([^)\s#]+)\))");
        std::smatch match;
        std::string function, source;
        if (is_code(key)) {
            if (!std::regex_search(question, match, kFunction))
                fail("the key is a line of code; expected [`function`](file) in the question");
            function = match.str(1);
            source = match.str(2);
        } else if (!is_letter(key) && !number_in(key.starts_with(kAbout) ? key.substr(kAbout.size()) : key)) {
            fail(fmt::format("the key is '{}'; expected a number, a letter or `code`", key));
        }
        answer.remove_prefix(end + kBold.size());
        while (!answer.empty() && (answer.front() == '.' || answer.front() == ':' || answer.front() == ','))
            answer.remove_prefix(1);
        questions_.push_back({question, std::string(key), std::string(trimmed(answer)), function, source});
        text_.clear();
    }

    std::string_view file_;
    std::vector<Question> questions_;
    std::string text_;  // of the question being read
    int begun_at_ = 0;  // its first line; 0: none yet
    int line_ = 0;
};

}  // namespace

std::vector<Question> parse_questions(std::string_view readme, std::string_view file) {
    Parser parser(file);
    bool in_section = false, seen = false;
    int number = 0;
    while (!readme.empty()) {
        const std::string_view line = next_line(readme);
        ++number;
        if (line.starts_with("## ")) {
            in_section = trimmed(line) == kSection;
            seen = seen || in_section;
        } else if (in_section) {
            parser.take(line, number);
        }
    }
    return seen ? parser.result() : std::vector<Question>();
}

NumberedLines lines_of(const Question& question, std::string_view source) {
    const auto fail = [&question](const std::string& what) {
        throw QuestionError(fmt::format("{}: {}", question.file, what));
    };
    const auto found = find_functions(source, question.function);
    if (found.size() != 1)
        fail(fmt::format("there are {} definitions of {}; expected one", found.size(), question.function));
    NumberedLines lines;
    lines.first = line_at(source, found[0].head);
    std::string_view rest = source.substr(found[0].head, found[0].body_end - found[0].head);
    const std::string_view key = std::string_view(question.key).substr(1, question.key.size() - 2);
    int having = 0;
    while (!rest.empty()) {
        lines.texts.emplace_back(next_line(rest));
        if (lines.texts.back().find(key) == std::string::npos) continue;
        lines.right = lines.first + static_cast<int>(lines.texts.size()) - 1;
        ++having;
    }
    if (having != 1)
        fail(fmt::format("{} lines of {} have {}; expected one", having, question.function, question.key));
    return lines;
}

bool is_right(std::string_view answer, std::string_view key) {
    answer = trimmed(answer);
    if (key.starts_with(kLine)) {
        key.remove_prefix(kLine.size());
        const auto is_equal = [](char typed, char letter) {
            return std::tolower(static_cast<unsigned char>(typed)) == letter;
        };
        if (std::ranges::equal(answer.substr(0, kLine.size()), kLine, is_equal))
            answer = trimmed(answer.substr(kLine.size()));
    }
    if (is_letter(key))
        return !answer.empty() &&
               std::tolower(static_cast<unsigned char>(answer[0])) ==
                   std::tolower(static_cast<unsigned char>(key[0])) &&
               (answer.size() == 1 || std::string_view(") .:,").find(answer[1]) != std::string_view::npos);
    constexpr double kOfAbout = 0.25;
    constexpr double kRounding = 1e-9;
    const bool is_about = key.starts_with(kAbout);
    if (is_about) key.remove_prefix(kAbout.size());
    if (answer.starts_with(kAbout)) answer.remove_prefix(kAbout.size());
    const std::string unit = unit_in(answer);
    if (!unit.empty() && !unit_in(key).empty() && unit != unit_in(key)) return false;
    const auto typed = number_in(answer);
    const auto wanted = number_in(key);
    return typed && wanted &&
           std::abs(*typed - *wanted) <= std::abs(*wanted) * (is_about ? kOfAbout : kRounding);
}

std::string expected_answer(std::string_view key) {
    if (is_letter(key)) return "a letter";
    if (is_code(key)) return "the number of a line";
    const bool is_about = key.starts_with(kAbout);
    if (is_about) key.remove_prefix(kAbout.size());
    const auto end = key.find_first_not_of("-0123456789.,");
    const std::string_view unit = end == std::string_view::npos ? "" : trimmed(key.substr(end));
    return fmt::format("a number{}{}", unit.empty() ? "" : fmt::format(", in {}", unit),
                       is_about ? "; a quarter off is near enough" : "");
}

}  // namespace course::tool
