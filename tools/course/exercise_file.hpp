// Makes an exercise from a lesson: the same file, with the bodies of some functions replaced by
// TODO comments.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exercise_sheet.hpp"
#include "text_file.hpp"

namespace course::tool {

// `lesson` with blank bodies for all kernels of `exercises` (the exercises of one file of day
// `day`, "day05"), and a first line that describes the file. A blank body has a comment with the
// task, as wide as the column limit allows, and returns {} if the function returns a value. Throws
// ExerciseError for a kernel that does not exist, or that two exercises name.
std::string make_exercise(std::string_view lesson, std::string_view day,
                          const std::vector<Exercise>& exercises);

// "day05" of day05_matmul_tiled; a directory that is not a day of the calendar keeps its name.
std::string name_of_day(std::string_view directory);

// The initial contents of the learner's copy of `file`: made from the lesson's file or, for a bug
// hunt, the file that the hunt starts from. `directory`: the directory of the day; `sheet`: its
// exercises.md. Throws ExerciseError.
std::string blank_file(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                       std::string_view file);

// The lesson's `file`, in which the functions of a day's nth exercise return immediately, like
// blank ones, while the environment variable COURSE_SOLVED is less than n. So one build is enough
// to solve the exercises one after the other. A file that starts from another one is the lesson's.
// For the CPU.
std::string file_in_stages(const std::filesystem::path& directory, const ExerciseSheet& sheet,
                           std::string_view file);

// The files of a day's exercises, each once, relative to the day's directory.
std::vector<std::string> files_of(const ExerciseSheet& sheet);

// The prose of exercises.md, wrapped to at most `width` columns. Paragraphs are kept, list items
// have a hanging indentation of two, and text that is indented by four or between ``` is not
// changed.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace course::tool
