// What the learner's commands have in common: the exercises, the progress, and which exercise is
// meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"
#include "commands.hpp"
#include "logbook.hpp"
#include "workbook.hpp"

namespace course::tool {

struct Learner {
    explicit Learner(const Checkout& checkout);

    // The first that is not solved; nothing when all are. With `chapter`: of that one.
    std::optional<WorkbookEntry> first_unsolved(const Chapter* chapter = nullptr) const;
    // The exercise that `name` means: of a day's the first that is not solved, else the last.
    // Without a name: the one that was named last or, when that is solved, the next of its day or
    // of all.
    WorkbookEntry choose(const std::optional<std::string>& name);

    Workbook book;
    Logbook logbook;

  private:
    WorkbookEntry choose_again() const;
};

// "my/day05_matmul_tiled/matmul_tiled.cu:57, about 10 minutes": where to write.
std::string describe(const Workbook& book, const WorkbookEntry& entry);

// What the exercise asks; before the first of a day, what the day's are about. Copies the blank
// files, if need be.
void print_exercise(const Learner& learner, const WorkbookEntry& entry);

// Text of exercises.md, filled into lines.
void print_prose(const std::string& text);

// "***"
std::string stars(int count);

// Checks it, tells how it went, and keeps that.
bool check_and_record(Learner& learner, const WorkbookEntry& entry, const Checkout& checkout,
                      const CheckCommand& command);

}  // namespace course::tool
