// Days whose number has changed, and with it the names of a learner's files and exercises.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace course::tool {

// Version 1 of progress.json has the old numbers, version 2 those of now.
constexpr int kProgressVersion = 2;

// Renames the learner's directories of days that have another number now, and says so on stderr. A
// directory whose new name is taken stays, with a message.
void rename_days(const std::filesystem::path& mine);

// Changes the ids of exercises in version 1 of progress.json to those of now: "day02/graph" to
// "day09/graph".
class Renumbering {
  public:
    // `ids`: all of the file. A program of before, run once more, writes version 1 with the numbers
    // of now.
    explicit Renumbering(const std::vector<std::string>& ids);
    std::string operator()(const std::string& id) const;

  private:
    bool day43_is_old_ = true;
};

}  // namespace course::tool
