// ./course exercises: for authors. Can every blank file be made, and does it take part in the exercise's build?
#include <fmt/format.h>

#include <set>

#include "commands.hpp"
#include "errors.hpp"
#include "exercise_file.hpp"
#include "workbook.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// A header that no file includes can be filled in, and nothing would change.
bool is_included(const fs::path& directory, const fs::path& header) {
    for (const auto& file : fs::recursive_directory_iterator(directory)) {
        const fs::path extension = file.path().extension();
        if (extension != ".cu" && extension != ".cuh" && extension != ".hpp") continue;
        if (read_text_file(file.path()).find(header.filename().string() + "\"\n") != std::string::npos)
            return true;
    }
    return false;
}

// Files beside those that hunts start from, which no hunt names.
std::vector<fs::path> strangers(const fs::path& directory, const ExerciseSheet& sheet) {
    std::set<fs::path> known, folders;
    for (const Exercise& exercise : sheet.exercises) {
        if (!exercise.by_hand()) continue;
        known.insert(directory / exercise.starts_from);
        folders.insert((directory / exercise.starts_from).parent_path());
    }
    std::vector<fs::path> found;
    for (const fs::path& folder : folders) {
        for (const auto& file : fs::directory_iterator(folder)) {
            if (!known.contains(file.path())) found.push_back(file.path());
        }
    }
    return found;
}

// What is wrong with the exercises of a day.
std::vector<std::string> mistakes(const fs::path& directory, const ExerciseSheet& sheet) {
    std::vector<std::string> all;
    for (const std::string& file : files_of(sheet)) {
        try {
            blank_file(directory, sheet, file);
            if (fs::path(file).extension() != ".cu" && !is_included(directory, file))
                all.push_back(
                    fmt::format("{}: no file of the day includes it", Workbook::shown(directory / file)));
        } catch (const ExerciseError& error) {
            all.emplace_back(error.what());
        }
    }
    for (const fs::path& file : strangers(directory, sheet))
        all.push_back(fmt::format("{}: no exercise names it", Workbook::shown(file)));
    return all;
}

}  // namespace

int try_exercises(const Checkout& checkout, const std::optional<std::string>& day) {
    const Calendar calendar = load_calendar(checkout.calendar());
    const Workbook book(checkout, calendar, learners_directory(checkout));
    const Chapter* const only = day ? book.find(*day).front().chapter : nullptr;
    std::size_t exercises = 0;
    std::size_t files = 0;
    bool all_well = true;
    for (const Chapter& chapter : book.chapters()) {
        if (only != nullptr && &chapter != only) continue;
        exercises += chapter.sheet.exercises.size();
        files += files_of(chapter.sheet).size();
        for (const std::string& mistake : mistakes(checkout.root / chapter.directory, chapter.sheet)) {
            fmt::print(stderr, "{}\n", mistake);
            all_well = false;
        }
    }
    fmt::print("exercises: {}, files: {}\n", exercises, files);
    return all_well ? kSuccess : kFailed;
}

}  // namespace course::tool
