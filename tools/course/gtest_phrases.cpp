#include "gtest_phrases.hpp"

#include <regex>
#include <string_view>

#include "text_file.hpp"

namespace course::tool {
namespace {

// Lines that EXPECT_TRUE(result.ok()) prints before the test's own message.
bool is_frame(std::string_view line) {
    return line.starts_with("Value of: ") || line == "  Actual: false" || line == "Expected: true" ||
           line == "  Actual: true" || line == "Expected: false" || line == "Failed";
}

// "  Actual: false (message of the assertion" begins a message, whose last line ends with ")".
constexpr std::string_view kActual = "  Actual: false (";

// "/root/day/a_test.cpp:76: n = 3" of a trace -> "n = 3"
std::string_view trace_of(std::string_view line) {
    const auto place = line.find(": ");
    return place == std::string_view::npos ? line : line.substr(place + 2);
}

struct Parts {
    std::string message;  // without the GoogleTest frame, if something else remains
    std::string trace;    // from SCOPED_TRACE: the case that failed
};

Parts parts_of(std::string_view lines) {
    Parts parts;
    std::string frame;
    bool in_brackets = false;
    bool in_trace = false;
    while (!lines.empty()) {
        std::string_view line = next_line(lines);
        if (line == "Google Test trace:") {
            in_trace = true;
            continue;
        }
        if (in_trace && !line.empty()) {
            parts.trace += (parts.trace.empty() ? "in the case: " : ", ") + std::string(trace_of(line));
            continue;
        }
        if (line.starts_with(kActual)) {
            in_brackets = true;
            line.remove_prefix(kActual.size());
        } else if (in_brackets && line == "Expected: true") {
            in_brackets = false;
            if (parts.message.ends_with(")\n")) parts.message.erase(parts.message.size() - 2, 1);
        }
        (is_frame(line) ? frame : parts.message) += std::string(line) + "\n";
    }
    if (parts.message.find_first_not_of(" \n") == std::string::npos) parts.message = frame;
    while (parts.message.ends_with('\n'))
        parts.message.pop_back();
    return parts;
}

struct Phrase {
    std::regex theirs;
    std::string (*ours)(const std::smatch&);
};

// The stand-in fills memory with NaN.
std::string with_reason_for_nan(const std::string& value) {
    static const std::regex kNan(R"(-?nan\b(\([^)]*\))?)");
    return std::regex_replace(value, kNan, "nan (never written, or computed from what was not?)",
                              std::regex_constants::format_first_only);
}

// "\"a\\nb\"" -> "a", a new line, "b"
std::string unescaped(std::string_view literal) {
    std::string text;
    for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
        const bool is_escaped = literal[i] == '\\' && i + 2 < literal.size();
        const char c = literal[is_escaped ? ++i : i];
        text += is_escaped && c == 'n' ? '\n' : c;
    }
    return text;
}

bool is_literal(std::string_view text) {
    return text.size() > 2 && text.starts_with('"') && text.ends_with('"');
}

std::string comparison(const std::string& value, const std::string& got, const std::string& expected,
                       const std::string& which_is) {
    const std::string is = expected.find("nan") == expected.npos && which_is.find("nan") == which_is.npos
                               ? with_reason_for_nan(got)
                               : got;
    // The author's variable `expected`, `expected[i]`: its name says nothing.
    if (expected.starts_with("expected") && !which_is.empty())
        return value + " is " + is + "; expected " + which_is;
    return value + " is " + is + "; expected " + expected +
           (which_is.empty() ? "" : ", which is " + which_is);
}

const std::vector<Phrase>& phrases() {
    static const std::vector<Phrase> kPhrases = {
        {std::regex(
             R"(Expected equality of these values:\n  (.*)(?:\n    Which is: (.*))?\n  (.*)(?:\n    Which is: (.*))?(?:\nWith diff:(?:\n[-+ @].*)*(?:\n(?=\n))?)?)"),
         [](const std::smatch& m) {
             if (m[3] == "\"\"" && is_literal(m.str(2))) return unescaped(m.str(2));
             if (m[1] == "\"\"" && is_literal(m.str(4))) return unescaped(m.str(4));
             if (m[2].matched) return comparison(m[1], m[2], m[3], m[4]);
             return m[4].matched ? comparison(m[3], m[4], m[1], "") : m.str(1) + " is not " + m.str(3);
         }},
        {std::regex(R"(Expected: \((.*)\) (==|!=|<=|>=|<|>) \((.*)\), actual: (.*) vs (.*))"),
         [](const std::smatch& m) {
             return comparison(m[1], m[4], m.str(2) + " " + m.str(3), m[3] == m[5] ? "" : m.str(5));
         }},
        {std::regex(
             R"re(Expected: (.*) (?:throws an exception of type (.*)|doesn't throw an exception)\.\n  Actual: it throws (?:nothing|(.*) with description "([\s\S]*)")\.)re"),
         [](const std::smatch& m) {
             if (!m[3].matched) return m.str(1) + " throws nothing; expected " + m.str(2);
             if (!m[2].matched) return m.str(1) + " throws " + m.str(3) + ": " + m.str(4);
             return m.str(1) + " throws " + m.str(3) + " (" + m.str(4) + "); expected " + m.str(2);
         }},
        {std::regex(R"re((?:Unknown )?C\+\+ exception (?:with description "([\s\S]*)" )?thrown in .*\.)re"),
         [](const std::smatch& m) {
             return m[1].matched ? m.str(1) : std::string("an exception that says nothing");
         }},
        {std::regex(R"(Value of: (.*)\n(?:  Actual: (.*)\nExpected: (.*)|Expected: (.*)\n  Actual: (.*)))"),
         [](const std::smatch& m) {
             return m[2].matched ? comparison(m[1], m[2], m[3], "")
                                 : m.str(1) + " is " + m.str(5) + "; expected: " + m.str(4);
         }},
    };
    return kPhrases;
}

// "expected 2U, which is 2" -> "expected 2"
std::string without_literals(const std::string& message) {
    static const std::regex kLiteral(R"((expected (?:[<>=!]+ )?)(-?\d+)[uUlL]+, which is \2(?!\d))");
    return std::regex_replace(message, kLiteral, "$1$2");
}

// "text.find(word) is 18446744073709551615; expected != std::string::npos, which is ..." is not
// helpful, but the text that the author added is.
std::string without_search(const std::string& message) {
    static const std::regex kSearch(
        R"(^.*\.find\(.*\) is \d+; expected (?:!= )?std::string(?:_view)?::npos, which is \d+\n(?=[\s\S]))");
    return std::regex_replace(message, kSearch, "", std::regex_constants::format_first_only);
}

std::string in_our_words(const std::string& message) {
    constexpr std::size_t kLongest = 8192;  // std::regex searches recursively, on the stack
    if (message.size() > kLongest) return message;
    for (const Phrase& phrase : phrases()) {
        std::smatch match;
        if (std::regex_search(message, match, phrase.theirs))
            return without_search(
                without_literals(match.prefix().str() + phrase.ours(match) + match.suffix().str()));
    }
    return message;
}

}  // namespace

std::string in_plain_words(const std::string& message) {
    const Parts parts = parts_of(message);
    return in_our_words(parts.message) + (parts.trace.empty() ? "" : "\n" + parts.trace);
}

}  // namespace course::tool
