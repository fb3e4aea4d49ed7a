#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "errors.hpp"
#include "learner.hpp"
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
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}{}\n", line, is_next ? "  <- next" : "");
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
        const auto solved = std::ranges::count_if(
            entries, [&](const WorkbookEntry& entry) { return learner.logbook.of(entry.id).solved; });
        fmt::print("{}\n", styled(fmt::format("{}, {} of {}", chapter.name, solved, entries.size()), kHeading,
                                  stdout));
        all_solved += solved;
        const bool is_chosen = named != nullptr || (next && next->chapter == &chapter);
        if (!command.all && !is_chosen) continue;
        for (const WorkbookEntry& entry : entries)
            print_line(*entry.exercise, learner.logbook.of(entry.id), next && next->id == entry.id);
    }
    if (named == nullptr)
        fmt::print("\n{} of {} exercises solved\n", all_solved, learner.book.entries().size());
    fmt::print("{}\n", styled("Stars: right; no finding and no more bank conflicts than the lesson's; no "
                              "more sectors; on a GPU as "
                              "fast.\nEvery exercise: ./course progress --all",
                              kQuiet, stdout));
    return kSuccess;
}

}  // namespace course::tool
