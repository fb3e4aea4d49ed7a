#include "gtest_phrases.hpp"

#include <regex>
#include <vector>

namespace course::tool {
namespace {

struct Phrase {
    std::regex theirs;
    const char* ours;
};

const std::vector<Phrase>& phrases() {
    static const std::vector<Phrase> kPhrases = {
        {std::regex(
             R"(Expected equality of these values:\n  (.*)\n    Which is: (.*)\n  (.*)\n    Which is: (.*))"),
         "$1 is $2; expected $3, which is $4"},
        {std::regex(R"(Expected equality of these values:\n  (.*)\n    Which is: (.*)\n  (.*))"),
         "$1 is $2; expected $3"},
        {std::regex(R"(Expected equality of these values:\n  (.*)\n  (.*)\n    Which is: (.*))"),
         "$2 is $3; expected $1"},
        {std::regex(R"(Expected equality of these values:\n  (.*)\n  (.*))"), "$1 is not $2"},
        {std::regex(R"(Expected: \((.*)\) (==|!=|<=|>=|<|>) \((.*)\), actual: (.*) vs \3(?=\n|$))"),
         "$1 is $4; expected $2 $3"},
        {std::regex(R"(Expected: \((.*)\) (==|!=|<=|>=|<|>) \((.*)\), actual: (.*) vs (.*))"),
         "$1 is $4; expected $2 $3, which is $5"},
        {std::regex(R"(Expected: (.*) throws an exception of type (.*)\.\n  Actual: it throws nothing\.)"),
         "$1 throws nothing; expected $2"},
        {std::regex(
             R"re(Expected: (.*) throws an exception of type (.*)\.\n  Actual: it throws (.*) with description "([\s\S]*)"\.)re"),
         "$1 throws $3 ($4); expected $2"},
        {std::regex(
             R"re(Expected: (.*) doesn't throw an exception\.\n  Actual: it throws (.*) with description "([\s\S]*)"\.)re"),
         "$1 throws $2: $3"},
        {std::regex(R"re(C\+\+ exception with description "([\s\S]*)" thrown in .*\.)re"), "$1"},
        {std::regex(R"(Unknown C\+\+ exception thrown in .*\.)"), "an exception that says nothing"},
        {std::regex(R"(Value of: (.*)\n  Actual: (.*)\nExpected: (.*))"), "$1 is $2; expected $3"},
        {std::regex(R"(Value of: (.*)\nExpected: (.*)\n  Actual: (.*))"), "$1 is $3; expected: $2"},
    };
    return kPhrases;
}

// "expected 2U, which is 2" -> "expected 2"
std::string without_literals(const std::string& message) {
    static const std::regex kLiteral(R"((expected (?:[<>=!]+ )?)(-?\d+)[uUlL]+, which is \2(?!\d))");
    return std::regex_replace(message, kLiteral, "$1$2");
}

// "text.find(word) is 18446744073709551615; expected != std::string::npos, which is ..." says
// nothing: what the author added does.
std::string without_search(const std::string& message) {
    static const std::regex kSearch(
        R"(^.*\.find\(.*\) is \d+; expected (?:!= )?std::string(?:_view)?::npos, which is \d+\n(?=[\s\S]))");
    return std::regex_replace(message, kSearch, "", std::regex_constants::format_first_only);
}

}  // namespace

std::string in_plain_words(const std::string& message) {
    constexpr std::size_t kLongest = 8192;  // what one expression searches it does on the stack
    if (message.size() > kLongest) return message;
    for (const Phrase& phrase : phrases()) {
        if (std::regex_search(message, phrase.theirs)) {
            return without_search(without_literals(std::regex_replace(
                message, phrase.theirs, phrase.ours, std::regex_constants::format_first_only)));
        }
    }
    return message;
}

}  // namespace course::tool
