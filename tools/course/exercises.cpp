// ./course exercises: for authors. Checks that every blank file can be created and is part of the
// exercise's build.
#include <fmt/format.h>

#include <regex>
#include <set>

#include "cause.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "exercise_file.hpp"
#include "questions.hpp"
#include "workbook.hpp"

namespace course::tool {
namespace {

namespace fs = std::filesystem;

// Checks that a header is included, because filling in an unused header would have no effect.
bool is_included(const fs::path& directory, const fs::path& header) {
    for (const auto& file : fs::recursive_directory_iterator(directory)) {
        const fs::path extension = file.path().extension();
        if (extension != ".cu" && extension != ".cuh" && extension != ".hpp") continue;
        if (read_text_file(file.path()).find(header.filename().string() + "\"\n") != std::string::npos)
            return true;
    }
    return false;
}

// Files next to the starting files of bug hunts that no hunt names.
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

// The errors in the exercises of a day.
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
    for (const Exercise& exercise : sheet.exercises) {
        const fs::path given = directory / exercise.starts_from, solution = directory / exercise.file;
        if (exercise.causes.empty() || !fs::exists(given) || !fs::exists(solution)) continue;
        for (const std::string& mistake :
             mistakes_in_causes(exercise, sheet, read_text_file(given), read_text_file(solution)))
            all.push_back(fmt::format("{}/{}: {}", Workbook::shown(directory), exercise.name, mistake));
    }
    for (const fs::path& file : strangers(directory, sheet))
        all.push_back(fmt::format("{}: no exercise names it", Workbook::shown(file)));
    return all;
}

// Why `./course COMMAND REST`, named in a text of `entry`, is of no use to a learner, or "".
std::string why_no_use(const Workbook& book, const WorkbookEntry& entry, const std::string& command,
                       const std::string& rest) {
    if (command == "solution") return "refuses until the exercise has been checked";
    if ((command == "inspect" || command == "run") && rest.ends_with("--only " + entry.exercise->version))
        return fmt::format("shows the lesson's kernel, not the learner's; expected ./course check {}",
                           entry.id);
    if (command != "check") return "";
    try {
        for (const WorkbookEntry& meant : book.find(rest.substr(0, rest.find(' ')))) {
            const bool is_version = !meant.exercise->version.empty() && !meant.exercise->needs_inspection;
            if (rest.ends_with("--inspect") && !is_version)
                return fmt::format("{} is no version that could be inspected by itself", meant.id);
        }
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

// Finds useless commands in the texts of an exercise, such as
// `./course check day05/naive --inspect`.
std::vector<std::string> useless_commands(const Workbook& book, const WorkbookEntry& entry) {
    static const std::regex kCommand("`\\./course ([a-z]+) ?([^`]*)`");
    std::string text = entry.exercise->whole_task();
    for (const std::string& hint : entry.exercise->hints)
        text += "\n" + hint;
    std::vector<std::string> all;
    for (std::sregex_iterator match(text.begin(), text.end(), kCommand), end; match != end; ++match) {
        const std::string why = why_no_use(book, entry, match->str(1), match->str(2));
        if (!why.empty()) all.push_back(fmt::format("{}: {} {}", entry.id, match->str(), why));
    }
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
        try {
            const fs::path readme = checkout.root / chapter.directory / "README.md";
            if (fs::exists(readme)) parse_questions(read_text_file(readme), chapter.directory + "/README.md");
        } catch (const QuestionError& error) {
            fmt::print(stderr, "{}\n", error.what());
            all_well = false;
        }
    }
    for (const WorkbookEntry& entry : book.entries()) {
        if (only != nullptr && entry.chapter != only) continue;
        for (const std::string& mistake : useless_commands(book, entry)) {
            fmt::print(stderr, "{}\n", mistake);
            all_well = false;
        }
    }
    fmt::print("exercises: {}, files: {}\n", exercises, files);
    return all_well ? kSuccess : kFailed;
}

}  // namespace course::tool
