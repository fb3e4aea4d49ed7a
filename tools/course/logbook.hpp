// How far a learner is: my/progress.json.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "file_lock.hpp"

namespace course::tool {

struct ExerciseRecord {
    bool solved = false;
    int failures = 0;  // checks that it did not pass
    int hints = 0;     // shown so far
    int stars = 0;     // of the best check

    // After a try the solution may be shown.
    bool is_tried() const { return solved || failures > 0; }

    bool operator==(const ExerciseRecord&) const = default;
};

class Logbook {
  public:
    // Reads the file, if there is one. A damaged one is set aside as <file>.damaged (or
    // .damaged2...), and stderr says so; of one that is damaged in places, the other places count.
    // Throws std::runtime_error when it cannot be read.
    explicit Logbook(std::filesystem::path file);

    // Of exercise "day05/coalesced"; the start of one if nothing is known of it.
    const ExerciseRecord& of(const std::string& id) const;
    // Changes it, and writes the file at once, all or nothing. What others have written meanwhile
    // is kept. Where the file cannot be written, stderr says so.
    template <class Change>
    void update(const std::string& id, Change change) {
        const auto lock = lock_directory();
        read();
        change(records_[id]);
        write();
    }

    // The exercise that was named last; empty: none was.
    const std::string& current() const { return current_; }
    void set_current(const std::string& id);

    // Again, after another process has written it.
    void read();

  private:
    std::unique_ptr<FileLock> lock_directory() const;
    void write() const;
    void set_aside(const std::string& damage, const std::string& loss) const;

    std::filesystem::path file_;
    std::map<std::string, ExerciseRecord> records_;
    std::string current_;
};

}  // namespace course::tool
