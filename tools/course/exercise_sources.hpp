// The sources of an exercise's build: a tree of copies in which the learner's files replace the
// lesson's.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace course::tool {

// Files of the learner that the programs started from here build as if they did not exist: an
// environment variable, because ninja starts make_exercise_sources.
void set_aside(const std::set<std::filesystem::path>& files);

// Writes each of `files` of the directory `day` to the directory `tree`: the learner's text from
// the directory `mine`, if the file exists and is not set aside; else the blank text, if
// exercises.md names the file; else the lesson's text.
//
// #include "..." looks first in the directory of the including file, so every copy finds the
// learner's header, whichever file includes it. A copy begins with #line, so that compilers,
// debuggers and the inspection name the original. Files whose text does not change are not written,
// so they cause no recompilation. A .cu file of the lesson that includes only the lesson's headers
// is not compiled at all: its copy is empty, and the linker uses the lesson's object. Throws
// ExerciseError.
void make_exercise_sources(const std::filesystem::path& day, const std::filesystem::path& mine,
                           const std::filesystem::path& tree, const std::vector<std::string>& files);

// Writes the exercise files of the directory `day` to the directory `mine`, as file_in_stages()
// returns them. Throws ExerciseError.
void make_files_in_stages(const std::filesystem::path& day, const std::filesystem::path& mine);

}  // namespace course::tool
