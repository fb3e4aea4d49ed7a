// What an exercise's build compiles: a tree of copies, in which the learner's files have the place
// of the lesson's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace course::tool {

// Writes each of `files` of the directory `day` to the directory `tree`: the learner's text from
// the directory `mine`, if the file is there; else the blank text, if exercises.md names the file;
// else the lesson's.
//
// #include "..." looks first in the directory of the including file, so every copy finds the
// learner's header, whichever file includes it. A copy begins with #line: compilers, debuggers and
// the inspection name the original. A file whose text stays as it is is not written, so nothing is
// compiled again for it. Of a .cu file that is the lesson's, and that includes only the lesson's
// headers, nothing is compiled: its copy is empty, and the linker takes the lesson's object. Throws
// ExerciseError.
void make_exercise_sources(const std::filesystem::path& day, const std::filesystem::path& mine,
                           const std::filesystem::path& tree, const std::vector<std::string>& files);

// Writes the files of the exercises of the directory `day` to the directory `mine`, as
// file_in_stages() has them. Throws ExerciseError.
void make_files_in_stages(const std::filesystem::path& day, const std::filesystem::path& mine);

}  // namespace course::tool
