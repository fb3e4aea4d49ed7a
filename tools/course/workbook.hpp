// All exercises of the course, and the learner's files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkout.hpp"
#include "days.hpp"
#include "exercise_sheet.hpp"
#include "text_file.hpp"

namespace course::tool {

// The files of one day's exercises.
struct Chapter {
    std::string name;       // "day05"
    std::string directory;  // "day05_matmul_tiled"
    ExerciseSheet sheet;
};

struct WorkbookEntry {
    std::string id;  // "day05/coalesced"
    const Chapter* chapter;
    const Exercise* exercise;
};

class Workbook {
  public:
    // Reads exercises.md of every existing day that has one. `mine` contains the learner's files,
    // in a directory for each day. Throws ExerciseError.
    Workbook(const Checkout& checkout, const Calendar& calendar, std::filesystem::path mine);
    Workbook(const Workbook&) = delete;
    Workbook& operator=(const Workbook&) = delete;

    const Calendar& calendar() const { return calendar_; }
    const std::vector<Chapter>& chapters() const { return chapters_; }
    const std::vector<WorkbookEntry>& entries() const { return entries_; }

    // The exercises that `name` refers to: day05/coalesced; coalesced if only one day has an
    // exercise of that name; all exercises of day05 for a name of the day. Throws UsageError with
    // the nearest name or the choices.
    std::vector<WorkbookEntry> find(std::string_view name) const;

    std::filesystem::path lesson(const WorkbookEntry& entry) const;  // the file with the solution
    std::string blank(const WorkbookEntry& entry) const;  // the initial contents of the learner's file
    bool is_begun(const WorkbookEntry& entry) const;  // has the learner written something into its functions?
    // Is the learner's file another than the blank one although none of its exercises is begun?
    bool is_changed_elsewhere(const WorkbookEntry& entry) const;
    std::filesystem::path mine(const WorkbookEntry& entry) const;  // the learner's
    // All of the learner's files of the chapter, each once.
    std::vector<std::filesystem::path> files_of(const Chapter& chapter) const;
    const std::filesystem::path& my_directory() const { return mine_; }
    // The path as it is shown: relative to the current directory if that is shorter.
    static std::string shown(const std::filesystem::path& file);

    // Copies the chapter's blank files to the learner's directory, but never overwrites a file.
    // Returns the copied files.
    std::vector<std::filesystem::path> copy_blank_files(const Chapter& chapter) const;

  private:
    std::vector<WorkbookEntry> entries_of(const Chapter& chapter) const;
    const Chapter& chapter_of(std::string_view day) const;
    WorkbookEntry exercise_of_day(std::string_view day, std::string_view name) const;

    const Checkout checkout_;
    const Calendar calendar_;
    std::filesystem::path mine_;
    std::vector<Chapter> chapters_;
    std::vector<WorkbookEntry> entries_;
};

// COURSE_MY, or my/ in the checkout.
std::filesystem::path learners_directory(const Checkout& checkout);

// `file` with `suffix`, or with suffix2, suffix3...: the first name that does not exist.
std::filesystem::path free_name(const std::filesystem::path& file, std::string_view suffix);

}  // namespace course::tool
