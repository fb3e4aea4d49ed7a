// Makes an exercise from a lesson: the same file, with the bodies of some functions replaced by what is asked.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hints.hpp"

namespace course::tool {

// `lesson` with blank bodies for all kernels of `exercises` (those of one file of day `day`, "day05"), and a first line that
// says what it is. A body says what is asked, in a comment as wide as the course's layout allows, and returns {} where the
// function returns something. Throws ExerciseError: a kernel that is not there, or that two exercises name.
std::string make_exercise(std::string_view lesson, std::string_view day,
                          const std::vector<Exercise>& exercises);

// The prose of HINTS.md, line by line, in no more than `width` columns. Paragraphs stay; a list's items hang by two; what is
// indented by four, or between ```, stays as it is.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace course::tool
