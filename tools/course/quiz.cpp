#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "questions.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

// The learner's line; empty at the end of the input, too.
std::string read_answer(bool& ended) {
    std::string answer;
    ended = !std::getline(std::cin, answer);
    return answer;
}

void print_code(const std::string& file, const NumberedLines& lines) {
    fmt::print("\n  {}\n", styled(file, kQuiet, stdout));
    for (std::size_t i = 0; i < lines.texts.size(); ++i)
        fmt::print("  {}  {}\n",
                   styled(fmt::format("{:4}", lines.first + static_cast<int>(i)), kQuiet, stdout),
                   lines.texts[i]);
}

}  // namespace

int quiz(const Checkout& checkout, const std::string& name) {
    Learner learner(checkout);
    const Day& day = find_day(learner.book.calendar(), name);
    const std::filesystem::path readme = checkout.root / day.directory / "README.md";
    std::vector<Question> questions;
    if (std::filesystem::exists(readme))
        questions = parse_questions(read_text_file(readme), day.directory + "/README.md");
    if (questions.empty())
        throw UsageError(
            fmt::format("{} has no questions yet: its README has no section Predict", day.directory));
    std::vector<std::optional<NumberedLines>> lines;  // of the questions that are about a line
    for (const Question& question : questions) {
        if (question.function.empty())
            lines.emplace_back();
        else
            lines.emplace_back(
                lines_of(question, read_text_file(checkout.root / day.directory / question.file)));
    }
    fmt::print("{}: {} question{}. Predict, then read why. An empty line passes on.\n\n",
               styled(day.title, kHeading, stdout), questions.size(), questions.size() == 1 ? "" : "s");
    std::size_t right = 0;
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const Question& question = questions[i];
        print_prose(fmt::format("{}. {}", i + 1, question.text));
        if (lines[i]) print_code(day.directory + "/" + question.file, *lines[i]);
        fmt::print("\n  Your answer ({}): ", expected_answer(question.key));
        std::fflush(stdout);
        bool ended = false;
        const std::string answer = read_answer(ended);
        if (ended) {
            fmt::print("\n");
            return kSuccess;
        }
        const bool is_empty = answer.find_first_not_of(" \t\r") == std::string::npos;
        const bool good =
            !is_empty && is_right(answer, lines[i] ? fmt::format("line {}", lines[i]->right) : question.key);
        right += good ? 1 : 0;
        // The first answer counts: after it the learner has read the right one.
        if (!is_empty) learner.logbook.answered(fmt::format("{}/{}", short_name(day), i + 1), good);
        fmt::print("  {}\n",
                   good ? styled("Right.", kGood, stdout)
                        : styled(lines[i] ? fmt::format("It is line {}: {}", lines[i]->right, question.key)
                                          : fmt::format("It is {}.", question.key),
                                 kNotice, stdout));
        print_prose(question.explanation);
        fmt::print("\n");
    }
    fmt::print("{} of {} right\n", right, questions.size());
    return kSuccess;
}

}  // namespace course::tool
