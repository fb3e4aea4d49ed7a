// The learner's verdict on a file that is wrong: the line
//
//     // Verdict: bank conflicts, line 17
//
// of the learner's file, where the given file has "// Verdict: ?, line ?". The number is that of a
// line of the given file, however the learner has changed the copy since.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exercise_sheet.hpp"

namespace course::tool {

inline constexpr std::string_view kOpenVerdict = "// Verdict: ?, line ?";

struct CauseJudgement {
    // "right"; "open": not filled in; "unknown": none of the day's causes; "wrong"; "wrong line":
    // of the right cause. Empty: the exercise asks for none.
    std::string state;
    std::string text;  // for the learner, without the answer

    bool is_right() const { return state.empty() || state == "right"; }
};

// The names of all causes of a day, each once, in alphabetical order: what a learner chooses from.
std::vector<std::string> causes_of(const ExerciseSheet& sheet);

// Names are compared without regard to case, and a hyphen is a blank. `given`: the file that the
// exercise starts from, `mine`: the learner's.
CauseJudgement judge_cause(const Exercise& exercise, const ExerciseSheet& sheet, std::string_view given,
                           std::string_view mine);

// An author's errors: a text that stands on no line of `given` or on several, a file without the
// line of the verdict, a `solution` whose own verdict is wrong.
std::vector<std::string> mistakes_in_causes(const Exercise& exercise, const ExerciseSheet& sheet,
                                            std::string_view given, std::string_view solution);

}  // namespace course::tool
