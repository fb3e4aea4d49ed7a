#include "learner.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

#include "errors.hpp"
#include "exercise_file.hpp"
#include "functions.hpp"
#include "renewed.hpp"
#include "renumbered.hpp"

namespace course::tool {
namespace {

// The line of the exercise's first kernel; 0 if it is not found.
int line_of_first_kernel(const std::filesystem::path& file, const Exercise& exercise) {
    if (exercise.by_hand() || !std::filesystem::exists(file)) return 0;
    const std::string text = read_text_file(file);
    try {
        int first = 0;
        for (const std::string& kernel : exercise.kernels) {
            const auto functions = find_functions(text, kernel);
            const int line = functions.empty() ? 0 : line_at(text, functions.front().body_begin);
            if (line > 0 && (first == 0 || line < first)) first = line;
        }
        return first;
    } catch (const ExerciseError&) {
        return 0;
    }
}

std::filesystem::path with_renamed_days(const std::filesystem::path& mine) {
    rename_days(mine);
    return mine;
}

// A link leads nowhere in a terminal: [beyond/](beyond/README.md) becomes "beyond/", and
// [all sizes](../docs/measured/day01.md) "all sizes: docs/measured/day01.md".
std::string without_links(const std::string& text) {
    static const std::regex kOutsideTheDay(R"(\[([^\]]+)\]\((?:\.\./)+([^)\s#]+)[^)\s]*\))");
    static const std::regex kLink(R"(\[([^\]]+)\]\([^)\s]+\.[a-z]+(?:#[^)\s]*)?\))");
    return std::regex_replace(std::regex_replace(text, kOutsideTheDay, "$1: $2"), kLink, "$1");
}

}  // namespace

Learner::Learner(const Checkout& checkout)
    : book(checkout, load_calendar(checkout.calendar()), with_renamed_days(learners_directory(checkout))),
      logbook(book.my_directory() / "progress.json") {
    if (book.entries().empty()) throw UsageError("no day has exercises yet");
    renew_files(book, logbook);
}

std::optional<WorkbookEntry> Learner::first_unsolved(const Chapter* chapter) const {
    const auto of_core = first_unsolved_of(/*beyond=*/false, chapter);
    return of_core ? of_core : first_unsolved_of(/*beyond=*/true, chapter);
}

std::optional<WorkbookEntry> Learner::first_unsolved_of(bool beyond, const Chapter* chapter) const {
    for (const WorkbookEntry& entry : book.entries()) {
        if (entry.exercise->is_beyond() == beyond && (chapter == nullptr || entry.chapter == chapter) &&
            !logbook.of(entry.id).solved)
            return entry;
    }
    return std::nullopt;
}

std::optional<WorkbookEntry> Learner::choose_of(bool beyond) {
    const auto current = std::ranges::find(book.entries(), logbook.current(), &WorkbookEntry::id);
    std::optional<WorkbookEntry> next;
    if (current != book.entries().end()) {
        const bool goes_on = current->exercise->is_beyond() == beyond && !logbook.of(current->id).solved;
        next = goes_on ? *current : first_unsolved_of(beyond, current->chapter);
    }
    if (!next) next = first_unsolved_of(beyond);
    if (next) logbook.set_current(next->id);
    return next;
}

WorkbookEntry Learner::choose(const std::optional<std::string>& name) {
    if (!name) return choose_again();
    const std::vector<WorkbookEntry> meant = book.find(*name);
    const auto unsolved = std::ranges::find_if(
        meant, [this](const WorkbookEntry& entry) { return !logbook.of(entry.id).solved; });
    const WorkbookEntry entry = unsolved == meant.end() ? meant.back() : *unsolved;
    logbook.set_current(entry.id);
    return entry;
}

WorkbookEntry Learner::choose_again() const {
    const auto current = std::ranges::find(book.entries(), logbook.current(), &WorkbookEntry::id);
    if (current != book.entries().end()) {
        if (!logbook.of(current->id).solved) return *current;
        const bool beyond = current->exercise->is_beyond();
        if (const auto next = first_unsolved_of(beyond, current->chapter)) return *next;
        if (const auto next = first_unsolved_of(beyond)) return *next;
    }
    return first_unsolved().value_or(book.entries().back());
}

std::string describe(const Workbook& book, const WorkbookEntry& entry) {
    const std::filesystem::path file = book.mine(entry);
    const int line = line_of_first_kernel(file, *entry.exercise);
    return fmt::format("{}{}, about {} minute{}", Workbook::shown(file),
                       line > 0 ? fmt::format(":{}", line) : "", entry.exercise->minutes,
                       entry.exercise->minutes == 1 ? "" : "s");
}

void print_prose(const std::string& text) {
    constexpr std::size_t kWidest = 100;
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
    for (const std::string& line :
         wrapped(without_links(text), known ? std::min<std::size_t>(kWidest, size.ws_col - 2U) : kWidest))
        fmt::print("{}\n", line.empty() ? "" : "  " + line);
}

std::string stars(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
        text += "*";
    return text;
}

}  // namespace course::tool
