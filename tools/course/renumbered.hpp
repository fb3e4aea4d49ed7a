// Days whose number has changed, and with it the names of a learner's files and exercises.
#pragma once

#include <filesystem>
#include <string>

namespace course::tool {

// Version 1 of progress.json has the old numbers, version 2 those of now.
constexpr int kProgressVersion = 2;

// Renames the learner's directories of days that have another number now, and says so on stderr. A
// directory whose new name is taken stays, with a message.
void rename_days(const std::filesystem::path& mine);

// The id of an exercise in version 1 of progress.json, as it is now: "day02/graph" is
// "day09/graph".
std::string renumbered(const std::string& id);

}  // namespace course::tool
