// Shared by the learner's commands: the exercises, the progress, and the choice of an exercise.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "commands.hpp"
#include "logbook.hpp"
#include "workbook.hpp"

namespace course::tool {

struct Learner {
    explicit Learner(const Checkout& checkout);

    // The first exercise that is not solved, in `chapter` if given: of the core, then of the rest.
    // Empty if all are solved.
    std::optional<WorkbookEntry> first_unsolved(const Chapter* chapter = nullptr) const;
    // The same, of the core or of the rest only.
    std::optional<WorkbookEntry> first_unsolved_of(bool beyond, const Chapter* chapter = nullptr) const;
    // The next exercise of the core or of the rest: in the day of the one named last, then in the
    // course. It becomes the one named last.
    std::optional<WorkbookEntry> choose_of(bool beyond);
    // The exercise that `name` refers to. For a day: its first exercise that is not solved, else
    // its last. Without a name: the exercise that was named last or, if that is solved, the next
    // one of its day or of the course, of the core or of the rest as that was.
    WorkbookEntry choose(const std::optional<std::string>& name);

    Workbook book;
    Logbook logbook;
    std::set<std::filesystem::path> broken{};  // files of the learner that do not compile

  private:
    WorkbookEntry choose_again() const;
};

// "my/day05_matmul_tiled/matmul_tiled.cu:57, about 10 minutes": where to write.
std::string describe(const Workbook& book, const WorkbookEntry& entry);

// Prints the task of the exercise, and before the first exercise of a day the introduction to the
// day's exercises. Copies the blank files if necessary.
void print_exercise(const Learner& learner, const WorkbookEntry& entry);

// Prints text of exercises.md, wrapped.
void print_prose(const std::string& text);

// "***"
std::string stars(int count);

struct Judgement {
    // "solved", "not yet", "cannot run" (the machine lacks something), "blank" (not checked).
    std::string verdict;
    int tests = 0;  // that pass; 0 if not solved
    int stars = 0;
    std::vector<std::string> counts{};  // what the stars are for: sectors, wavefronts, time
    std::string why{};                  // it is not solved, as it was printed
    std::string cause{};                // state of the verdict on the cause (cause.hpp)

    bool solved() const { return verdict == "solved"; }
};

// Checks the exercise, prints the result, and records it.
Judgement check_and_record(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                           const CheckCommand& command);

}  // namespace course::tool
