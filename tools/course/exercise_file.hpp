// Makes an exercise from a lesson: the same file, with the bodies of some functions replaced by
// what is asked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exercise_sheet.hpp"
#include "text_file.hpp"

namespace course::tool {

// `lesson` with blank bodies for all kernels of `exercises` (those of one file of day `day`,
// "day05"), and a first line that says what it is. A body says what is asked, in a comment as wide
// as the course's layout allows, and returns {} where the function returns something. Throws
// ExerciseError: a kernel that is not there, or that two exercises name.
std::string make_exercise(std::string_view lesson, std::string_view day,
                          const std::vector<Exercise>& exercises);

// "day05" of day05_matmul_tiled; a directory that is no day of the calendar keeps its name.
std::string name_of_day(std::string_view directory);

// What the learner's copy of `file` holds at first: made from the lesson's file, or for a hunt the
// file that it starts from. `directory`: of the day; `sheet`: its exercises.md. Throws
// ExerciseError.
std::string blank_file(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                       std::string_view file);

// The lesson's `file`, in which the functions of a day's nth exercise return at once, as blank ones
// do, while the environment variable COURSE_SOLVED is less than n. So one build serves to solve the
// exercises one after the other. A file that starts from another one is the lesson's. For the CPU.
std::string file_in_stages(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                           std::string_view file);

// The files of a day's exercises, each once, relative to the day's directory.
std::vector<std::string> files_of(const ExerciseSheet& sheet);

// The prose of exercises.md, line by line, in no more than `width` columns. Paragraphs stay; a
// list's items hang by two; what is indented by four, or between ```, stays as it is.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace course::tool
