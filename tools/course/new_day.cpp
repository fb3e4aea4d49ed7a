#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "commands.hpp"
#include "days.hpp"
#include "errors.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// In tools/course/new_day: file in the new day, with TOPIC for the topic.
constexpr std::array<std::string_view, 9> kFiles = {
    "CMakeLists.txt", "README.md",           "exercises.md",    "topic.hpp",     "topic.cuh",
    "topic.cu",       "topic_reference.cpp", "topic_bench.cpp", "topic_test.cpp"};

using Values = std::array<std::pair<std::string_view, std::string>, 9>;

std::string filled(std::string text, const Values& values) {
    for (const auto& [name, value] : values) {
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
            text.replace(at, name.size(), value), at += value.size();
    }
    return text;
}

std::string in_cmake(const std::string& text) {
    return std::regex_replace(text, std::regex(R"([\\"$;])"), R"(\$&)");
}

// "filter_and_partition": "FilterAndPartition", or "Filter and partition".
std::string camel_case(const std::string& topic) {
    std::string result;
    bool upper = true;
    for (const char c : topic) {
        if (c != '_') result += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        upper = c == '_';
    }
    return result;
}
std::string sentence_case(std::string topic) {
    for (char& c : topic) {
        if (c == '_') c = ' ';
    }
    topic.front() = static_cast<char>(topic.front() - 'a' + 'A');
    return topic;
}

void check_is_free(const Checkout& checkout, const Calendar& calendar, const std::string& directory,
                   int number) {
    for (const Day& day : calendar.days) {
        if (day.number == number)
            throw UsageError(
                fmt::format("day {:02} is {}; expected a number that no day has", number, day.directory));
    }
    if (fs::exists(checkout.root / directory))
        throw UsageError(fmt::format("{} exists; expected the name of a new directory", directory));
}

// That of the numbered day before it, or of the first day.
std::string part_of(int number, const Calendar& calendar) {
    std::string part = calendar.days.empty() ? "" : calendar.days.front().part;
    for (const Day& day : calendar.days) {
        if (day.number && *day.number < number) part = day.part;
    }
    return part;
}

void tell_editors(const Checkout& checkout, const std::string& directory) {
    const fs::path file = checkout.root / ".clangd";
    replace_file(file, read_text_file(file) + fmt::format("---\nIf:\n  PathMatch: (.*/)?{0}/.*\n"
                                                          "CompileFlags:\n  Add: [-I../../{0}]\n",
                                                          directory));
}

}  // namespace

int new_day(const Checkout& checkout, const NewDayOptions& options) {
    std::smatch parts;
    if (!std::regex_match(options.directory, parts, std::regex("day([0-9]{2})_([a-z][a-z0-9_]*)")))
        throw UsageError(fmt::format("the name is '{}'; expected dayNN_topic, such as day97_dot_product",
                                     options.directory));
    const std::string number = parts[1];
    const std::string topic = parts[2];
    const int value = std::atoi(number.c_str());
    const Calendar calendar = load_calendar(checkout.calendar());
    check_is_free(checkout, calendar, options.directory, value);

    const std::string title = options.title.empty() ? sentence_case(topic) : options.title;
    const std::string question =
        options.question.empty() ? "Which question does this day answer?" : options.question;
    Values values = {{{"@DIRECTORY@", options.directory},
                      {"@DAY@", "day" + number},
                      {"@NUMBER@", std::to_string(value)},
                      {"@SEED@", std::to_string(value)},
                      {"@TOPIC@", topic},
                      {"@CLASS@", "Day" + camel_case(topic)},
                      {"@TITLE@", title},
                      {"@QUESTION@", question},
                      {"@PART@", part_of(value, calendar)}}};
    const fs::path templates = checkout.root / "tools" / "course" / "new_day";
    for (const std::string_view name : kFiles) {
        std::string target(name);
        if (target.starts_with("topic")) target.replace(0, 5, topic);
        Values used = values;
        if (name == "CMakeLists.txt") {
            for (auto& [key, text] : used)
                text = in_cmake(text);
        }
        replace_file(checkout.root / options.directory / target,
                     filled(read_text_file(templates / (std::string(name) + ".in")), used));
    }
    tell_editors(checkout, options.directory);

    fmt::print(
        "{0}/ compiles and runs; its test says what to write:\n"
        "  ./course test day{1}      # one failure, with the list\n"
        "  ./course run day{1}\n"
        "  ./course next day{1}      # its exercise\n"
        "  ./course tables           # its row on the front page; once it is measured, docs/measured/{0}.md\n"
        ".clangd has its directory, too. CONTRIBUTING.md, 'A day', says how to go on.\n"
        "A chapter of the book? docs/book.md names the day of each.\n",
        options.directory, number);
    return kSuccess;
}

}  // namespace course::tool
