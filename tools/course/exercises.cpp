// ./course exercises: for authors. Makes the blank files from the lessons and HINTS.md.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "commands.hpp"
#include "errors.hpp"
#include "exercise_file.hpp"
#include "workbook.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// The files of a chapter that are made from the lesson's, and what they should hold.
std::map<fs::path, std::string> wanted_files(const Workbook& book, const Chapter& chapter) {
    std::map<fs::path, std::vector<Exercise>> by_file;
    std::map<fs::path, std::string> wanted;
    for (const WorkbookEntry& entry : book.entries()) {
        if (entry.chapter != &chapter) continue;
        if (!fs::exists(book.lesson(entry)))
            throw ExerciseError(
                fmt::format("{}: there is no {}", entry.id, Workbook::shown(book.lesson(entry))));
        if (!entry.exercise->by_hand()) {
            by_file[book.blank(entry)].push_back(*entry.exercise);
            wanted[book.blank(entry)] = read_text_file(book.lesson(entry));
        } else if (!fs::exists(book.blank(entry))) {
            throw ExerciseError(
                fmt::format("{}: names no kernels, so {} is written by hand, and it is not there", entry.id,
                            Workbook::shown(book.blank(entry))));
        }
    }
    for (auto& [file, text] : wanted)
        text = make_exercise(text, chapter.name, by_file[file]);
    return wanted;
}

// Sources in exercise/ that no exercise names.
std::vector<fs::path> strangers(const Workbook& book, const Chapter& chapter, const Checkout& checkout) {
    std::set<fs::path> known;
    for (const WorkbookEntry& entry : book.entries())
        known.insert(book.blank(entry));
    std::vector<fs::path> found;
    for (const auto& file :
         fs::recursive_directory_iterator(checkout.root / chapter.directory / "exercise")) {
        if (file.path().extension() == ".cu" && !known.contains(file.path())) found.push_back(file.path());
    }
    return found;
}

}  // namespace

int make_exercises(const Checkout& checkout, const std::optional<std::string>& day, bool check_only) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Workbook book(checkout, calendar, learners_directory(checkout));
    const Chapter* const only = day ? book.find(*day).front().chapter : nullptr;
    int differing = 0;
    std::size_t files = 0;
    for (const Chapter& chapter : book.chapters()) {
        if (only != nullptr && &chapter != only) continue;
        for (const auto& [file, text] : wanted_files(book, chapter)) {
            ++files;
            if (fs::exists(file) && read_text_file(file) == text) continue;
            ++differing;
            if (!check_only) replace_file(file, text);
            fmt::print(stderr, "{}: {}\n", Workbook::shown(file),
                       check_only ? "differs from its lesson; run ./course exercises" : "written");
        }
        for (const fs::path& file : strangers(book, chapter, checkout)) {
            ++differing;
            fmt::print(stderr, "{}: no exercise names it\n", Workbook::shown(file));
            if (!check_only) return kFailed;
        }
    }
    fmt::print("{} exercises, {} files made from lessons\n", book.entries().size(), files);
    return check_only && differing > 0 ? kFailed : kSuccess;
}

}  // namespace course::tool
