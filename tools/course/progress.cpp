#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
#include "questions.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

std::string count(int number, const char* what) {
    return number == 0 ? "" : fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

void print_line(const Exercise& exercise, const ExerciseRecord& record, bool is_next) {
    const std::string state = fmt::format("{:<6}", record.solved         ? "solved"
                                                   : record.failures > 0 ? "tried"
                                                                         : "-");
    const auto& style = record.solved ? kGood : record.failures > 0 ? kNotice : kQuiet;
    std::string line = fmt::format("  {:<28} {}  {:>3} min  {:<4} {:<16} {:<8}", exercise.name,
                                   styled(state, style, stdout), exercise.minutes, stars(record.stars),
                                   count(record.failures, "failed check"), count(record.hints, "hint"));
    if (record.has_cause && !record.solved) line += " cause found";
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}{}\n", line, is_next ? "  <- next" : "");
}

// 0 also if a README has errors, which ./course quiz reports: a learner may have written into it.
std::size_t number_of_questions(const Checkout& checkout, const Chapter& chapter) {
    const auto readme = checkout.root / chapter.directory / "README.md";
    if (!std::filesystem::exists(readme)) return 0;
    try {
        return parse_questions(read_text_file(readme), chapter.directory + "/README.md").size();
    } catch (const QuestionError&) {
        return 0;
    }
}

// "day15, 3 of 5, beyond 1 of 2, questions 2 of 3", and how many of its exercises are solved.
std::pair<std::ptrdiff_t, std::string> day_line(const Learner& learner, const Chapter& chapter,
                                                const std::vector<WorkbookEntry>& entries,
                                                const Checkout& checkout) {
    std::array<std::ptrdiff_t, 2> solved{}, all{};  // of the core, beyond it
    for (const WorkbookEntry& entry : entries) {
        const std::size_t part = entry.exercise->is_beyond() ? 1 : 0;
        ++all[part];
        solved[part] += learner.logbook.of(entry.id).solved ? 1 : 0;
    }
    std::string line = fmt::format("{}, {} of {}", chapter.name, solved[0], all[0]);
    if (all[1] > 0) line += fmt::format(", beyond {} of {}", solved[1], all[1]);
    const std::size_t questions = number_of_questions(checkout, chapter);
    if (questions > 0)
        line += fmt::format(", questions {} of {}", learner.logbook.right_answers(chapter.name), questions);
    return {solved[0] + solved[1], line};
}

int print_json(const Learner& learner) {
    auto list = nlohmann::ordered_json::array();
    for (const WorkbookEntry& entry : learner.book.entries()) {
        const ExerciseRecord& record = learner.logbook.of(entry.id);
        list.push_back(
            {{"id", entry.id},
             {"tests", entry.exercise->tests},
             {"solved", record.solved},
             {"failures", record.failures},
             {"hints", record.hints},
             {"stars", record.stars},
             {"minutes", entry.exercise->minutes},
             {"mine", learner.book.mine(entry).string()},
             {"lesson", learner.book.lesson(entry).string()},
             {"cause", entry.exercise->causes.empty() ? ""
                       : record.has_cause             ? "found"
                                                      : "open"},
             {"beyond", entry.exercise->is_beyond()},
             {"needs_inspection", entry.exercise->needs_inspection},
             {"is_inspected", entry.exercise->needs_inspection || !entry.exercise->traffic.empty()}});
    }
    fmt::print("{}\n", list.dump(2));
    return kSuccess;
}

}  // namespace

// Prints the named day in full. Without a name: a line for each day, and in full the day of the
// next exercise, or every day with `all`.
int show_progress(const Checkout& checkout, const ProgressCommand& command) {
    Learner learner(checkout);
    if (command.as_json) return print_json(learner);
    const Chapter* const named = command.name ? learner.book.find(*command.name).front().chapter : nullptr;
    auto next = learner.first_unsolved();
    if (next) next = learner.choose(std::nullopt);
    std::ptrdiff_t all_solved = 0;
    std::string part;
    for (const Chapter& chapter : learner.book.chapters()) {
        if (named != nullptr && named != &chapter) continue;
        const std::string& part_of_day = find_day(learner.book.calendar(), chapter.directory).part;
        if (named == nullptr && part_of_day != part)
            fmt::print("{}{}\n", part.empty() ? "" : "\n", part_of_day);
        part = part_of_day;
        std::vector<WorkbookEntry> entries;
        std::ranges::copy_if(learner.book.entries(), std::back_inserter(entries),
                             [&](const WorkbookEntry& entry) { return entry.chapter == &chapter; });
        const auto [solved, line] = day_line(learner, chapter, entries, checkout);
        fmt::print("{}\n", styled(line, kHeading, stdout));
        all_solved += solved;
        const bool is_chosen = named != nullptr || (next && next->chapter == &chapter);
        if (!command.all && !is_chosen) continue;
        bool in_core = true;
        for (const WorkbookEntry& entry : entries) {
            if (in_core && entry.exercise->is_beyond())
                fmt::print("  {}\n", styled("beyond", kQuiet, stdout));
            in_core = !entry.exercise->is_beyond();
            print_line(*entry.exercise, learner.logbook.of(entry.id), next && next->id == entry.id);
        }
    }
    if (named == nullptr)
        fmt::print("\n{} of {} exercises solved\n", all_solved, learner.book.entries().size());
    fmt::print("{}\n",
               styled("A star each for an answer that is right; that has no finding and no more bank "
                      "conflicts\nthan the lesson's; that moves no more sectors; that is as fast on a "
                      "GPU.\nQuestions: ./course quiz. Every exercise: ./course progress --all",
                      kQuiet, stdout));
    return kSuccess;
}

}  // namespace course::tool
