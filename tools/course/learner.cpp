#include "learner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "errors.hpp"
#include "exercise_file.hpp"
#include "functions.hpp"

namespace course::tool {
namespace {

// The line to go to; 0 where it is not to be found.
int line_of_first_kernel(const std::filesystem::path& file, const Exercise& exercise) {
    if (exercise.by_hand() || !std::filesystem::exists(file)) return 0;
    const std::string text = read_text_file(file);
    try {
        const auto functions = find_functions(text, exercise.kernels.front());
        return functions.empty() ? 0 : line_at(text, functions.front().body_begin);
    } catch (const ExerciseError&) {
        return 0;
    }
}

}  // namespace

Desk::Desk(const Checkout& checkout)
    : book(checkout, load_calendar(checkout.calendar()), learners_directory(checkout)),
      logbook(book.my_directory() / "progress.json") {
    if (book.entries().empty()) throw UsageError("no day has exercises yet");
}

std::optional<WorkbookEntry> Desk::first_unsolved(const Chapter* chapter) const {
    for (const WorkbookEntry& entry : book.entries()) {
        if ((chapter == nullptr || entry.chapter == chapter) && !logbook.of(entry.id).solved) return entry;
    }
    return std::nullopt;
}

WorkbookEntry Desk::choose(const std::optional<std::string>& name) const {
    const std::vector<WorkbookEntry> meant = name ? book.find(*name) : book.entries();
    const auto unsolved = std::ranges::find_if(
        meant, [this](const WorkbookEntry& entry) { return !logbook.of(entry.id).solved; });
    return unsolved == meant.end() ? meant.back() : *unsolved;
}

std::string describe(const Workbook& book, const WorkbookEntry& entry) {
    const std::filesystem::path file = book.mine(entry);
    const int line = line_of_first_kernel(file, *entry.exercise);
    return fmt::format("{}{}, about {} minute{}", Workbook::shown(file),
                       line > 0 ? fmt::format(":{}", line) : "", entry.exercise->minutes,
                       entry.exercise->minutes == 1 ? "" : "s");
}

void print_prose(const std::string& text) {
    constexpr std::size_t kWidth = 100;
    for (const std::string& line : wrapped(text, kWidth))
        fmt::print("{}\n", line.empty() ? "" : "  " + line);
}

std::string stars(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
        text += "*";
    return text;
}

}  // namespace course::tool
