#include "workbook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "common/check/nearest.hpp"
#include "errors.hpp"
#include "exercise_file.hpp"
#include "functions.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ids(const std::vector<WorkbookEntry>& entries) {
    std::vector<std::string> names;
    for (const WorkbookEntry& entry : entries)
        names.push_back(entry.id);
    return names;
}

}  // namespace

Workbook::Workbook(const Checkout& checkout, const Calendar& calendar, fs::path mine)
    : checkout_(checkout), calendar_(calendar), mine_(std::move(mine)) {
    for (const Day& day : calendar_.days) {
        const fs::path hints = checkout.root / day.directory / "exercises.md";
        if (!fs::exists(hints)) continue;
        chapters_.push_back(
            {short_name(day), day.directory,
             parse_exercise_sheet(read_text_file(hints), hints.lexically_relative(checkout.root).string())});
    }
    for (const Chapter& chapter : chapters_)
        std::ranges::copy(entries_of(chapter), std::back_inserter(entries_));
}

std::vector<WorkbookEntry> Workbook::entries_of(const Chapter& chapter) const {
    std::vector<WorkbookEntry> entries;
    for (const Exercise& exercise : chapter.sheet.exercises)
        entries.push_back({chapter.name + "/" + exercise.name, &chapter, &exercise});
    return entries;
}

std::vector<WorkbookEntry> Workbook::find(std::string_view name) const {
    if (name.empty()) throw UsageError("the exercise's name is empty; expected one of ./course progress");
    const auto slash = name.find('/');
    const std::string_view day = name.substr(0, slash);
    const std::string_view wanted = slash == std::string_view::npos ? "" : name.substr(slash + 1);
    if (!wanted.empty()) return {exercise_of_day(day, wanted)};

    std::vector<WorkbookEntry> found;
    std::ranges::copy_if(entries_, std::back_inserter(found),
                         [&](const WorkbookEntry& entry) { return entry.exercise->name == day; });
    if (found.size() == 1) return found;
    if (found.size() > 1)
        throw UsageError(
            fmt::format("'{}' is an exercise of several days: {}", name, fmt::join(ids(found), ", ")));
    try {
        return entries_of(chapter_of(day));
    } catch (const UsageError&) {
        if (name.starts_with("day") || day.find_first_not_of("0123456789") == std::string_view::npos) throw;
    }
    std::vector<std::string> candidates;
    for (const Chapter& chapter : chapters_) {
        candidates.insert(candidates.end(), {chapter.name, chapter.directory});
        for (const Exercise& exercise : chapter.sheet.exercises)
            candidates.push_back(exercise.name);
    }
    const std::string near = nearest(name, candidates);
    throw UsageError(fmt::format("there is no exercise '{}'{} All of them: ./course progress", name,
                                 near.empty() ? "." : fmt::format("; did you mean '{}'?", near)));
}

const Chapter& Workbook::chapter_of(std::string_view day_name) const {
    const Day& day = find_day(calendar_, day_name);
    const auto chapter = std::ranges::find(chapters_, day.directory, &Chapter::directory);
    if (chapter == chapters_.end())
        throw UsageError(
            fmt::format("{} has no exercises. Those there are: ./course progress", day.directory));
    return *chapter;
}

WorkbookEntry Workbook::exercise_of_day(std::string_view day, std::string_view name) const {
    const std::vector<WorkbookEntry> entries = entries_of(chapter_of(day));
    std::vector<std::string> names;
    for (const WorkbookEntry& entry : entries) {
        if (entry.exercise->name == name) return entry;
        names.push_back(entry.exercise->name);
    }
    throw UsageError(unknown_name("exercise", name, names));
}

fs::path Workbook::lesson(const WorkbookEntry& entry) const {
    return checkout_.root / entry.chapter->directory / entry.exercise->file;
}

std::string Workbook::blank(const WorkbookEntry& entry) const {
    return blank_file(checkout_.root / entry.chapter->directory, entry.chapter->sheet, entry.exercise->file);
}

fs::path Workbook::mine(const WorkbookEntry& entry) const {
    return mine_ / entry.chapter->directory / entry.exercise->file;
}

bool Workbook::is_begun(const WorkbookEntry& entry) const {
    if (!fs::exists(mine(entry))) return false;
    const std::string text = read_text_file(mine(entry));
    if (entry.exercise->by_hand()) return text != blank(entry);
    try {
        return text != with_bodies_from(text, blank(entry), entry.exercise->kernels);
    } catch (const ExerciseError&) {
        return true;  // the file has other functions than the blank file
    }
}

bool Workbook::is_changed_elsewhere(const WorkbookEntry& entry) const {
    if (!fs::exists(mine(entry)) || read_text_file(mine(entry)) == blank(entry)) return false;
    return std::ranges::none_of(entries_of(*entry.chapter), [&](const WorkbookEntry& other) {
        return other.exercise->file == entry.exercise->file && is_begun(other);
    });
}

std::vector<fs::path> Workbook::files_of(const Chapter& chapter) const {
    std::vector<fs::path> files;
    for (const WorkbookEntry& entry : entries_of(chapter)) {
        if (std::ranges::find(files, mine(entry)) == files.end()) files.push_back(mine(entry));
    }
    return files;
}

std::string Workbook::shown(const fs::path& file) {
    const std::string relative = file.lexically_relative(fs::current_path()).string();
    return relative.empty() || relative.starts_with("..") ? file.string() : relative;
}

std::vector<fs::path> Workbook::copy_blank_files(const Chapter& chapter) const {
    std::vector<fs::path> copied;
    for (const WorkbookEntry& entry : entries_of(chapter)) {
        const fs::path file = mine(entry);
        if (fs::exists(file)) continue;
        replace_file(file, blank(entry));
        copied.push_back(file);
    }
    return copied;
}

fs::path learners_directory(const Checkout& checkout) {
    const char* chosen = std::getenv("COURSE_MY");
    if (chosen == nullptr || *chosen == '\0') return checkout.root / "my";
    // These characters have a special meaning to CMake.
    if (std::string_view(chosen).find_first_of(";[]*?\"\\$\n") != std::string_view::npos)
        throw UsageError(fmt::format("COURSE_MY is '{}'; expected a path without any of ;[]*?\"\\$", chosen));
    return fs::absolute(chosen).lexically_normal();
}

fs::path free_name(const fs::path& file, std::string_view suffix) {
    fs::path name = fmt::format("{}{}", file.string(), suffix);
    for (int number = 2; fs::exists(name); ++number)
        name = fmt::format("{}{}{}", file.string(), suffix, number);
    return name;
}

}  // namespace course::tool
