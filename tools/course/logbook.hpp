// The learner's progress: my/progress.json.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "file_lock.hpp"

namespace course::tool {

struct ExerciseRecord {
    bool solved = false;
    int failures = 0;        // failed checks
    int hints = 0;           // shown so far
    int stars = 0;           // of the best check
    bool has_cause = false;  // the cause was named, which some exercises ask for first

    // After a try the solution may be shown.
    bool is_tried() const { return solved || failures > 0; }

    bool operator==(const ExerciseRecord&) const = default;
};

class Logbook {
  public:
    // Reads the file if it exists. A damaged file is renamed to <file>.damaged (or .damaged2...),
    // with a message on stderr. If only some records are damaged, the others are used. Throws
    // std::runtime_error if it cannot be read.
    explicit Logbook(std::filesystem::path file);

    // The record of exercise "day05/coalesced"; an empty record if there is none.
    const ExerciseRecord& of(const std::string& id) const;
    // Changes a record, and writes the file immediately and atomically. Changes that other
    // processes have written in the meantime are kept. If the file cannot be written, a message
    // goes to stderr.
    template <class Change>
    void update(const std::string& id, Change change) {
        const auto lock = lock_directory();
        read();
        change(records_[id]);
        write();
    }

    // Records the answer to a question, "day15/2". The first answer stays.
    void answered(const std::string& question, bool right);
    // The questions of a day that were answered right at once.
    int right_answers(const std::string& day) const;

    // What identifies the lesson of a day that the learner's files were made for (renewed.hpp);
    // empty: not known.
    std::string lesson_stamp(const std::string& day) const;
    void set_lesson_stamp(const std::string& day, const std::string& stamp);

    // The exercise that was named last; empty: none was.
    const std::string& current() const { return current_; }
    void set_current(const std::string& id);

    // Reads the file again, after another process has written it.
    void read();

  private:
    std::unique_ptr<FileLock> lock_directory() const;
    void write() const;
    void set_aside(const std::string& damage, const std::string& loss) const;

    std::filesystem::path file_;
    std::map<std::string, ExerciseRecord> records_;
    std::map<std::string, bool> answers_;  // to questions: was the first one right?
    std::map<std::string, std::string> lesson_stamps_;
    std::string current_;
};

}  // namespace course::tool
