// exercise/HINTS.md of a day: its exercises in order, what each asks, three hints each.
//
//     # Exercises of day 5: tiled matrix multiplication       introduction
//     ## coalesced                                            an exercise
//     - kernels: `multiply_coalesced`                         what is blank; none: exercise/<file> is written by hand
//     - file: `matmul_tiled.cu`                               the lesson's file that they are in
//     - tests: `*/coalesced_*`                                GoogleTest filter: these fail unsolved, and pass solved
//     - variant: `coalesced_32x32`                            what the score looks at; may be left out
//     - needs: inspection                                     for tests that count accesses; may be left out
//     - minutes: 10                                           for somebody who has solved those before
//     What is asked.
//     ### Hint 1 ... ### Hint 2 ... ### Hint 3
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Exercise {
    std::string name;
    std::vector<std::string> kernels{};
    std::string file{};
    std::string tests{};
    std::string variant{};
    bool needs_inspection = false;
    int minutes = 0;
    std::string task{};
    std::array<std::string, 3> hints{};

    bool by_hand() const { return kernels.empty(); }
};

struct ExerciseSheet {
    std::string title;
    std::string introduction;
    std::vector<Exercise> exercises;
};

// Something in an exercise's files that cannot be: the message begins with file and line.
class ExerciseError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// `file` is for messages. Throws ExerciseError.
ExerciseSheet parse_hints(std::string_view text, std::string_view file);

}  // namespace course::tool
