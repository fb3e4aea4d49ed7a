// exercises.md of a day: its exercises in order, with the task and three hints for each. The
// grammar:
//
//     # Exercises of day 5: tiled matrix multiplication       introduction
//     ## coalesced                                            an exercise
//     - kernels: `helper`, `multiply_coalesced`               functions whose bodies the learner writes
//     - file: `matmul_tiled.cuh`                              the lesson's file that defines them, a .cuh or a .cu; one in beyond/
//                                                             is not of the core, and comes behind those of the core
//     - starts_from: `broken_kernels/fold.cu`                 instead of kernels: the learner repairs this file
//     - cause: bank conflicts | `tile[threadIdx.x][k]`        what is wrong with the file that the exercise starts from, and a text
//                                                             that only the guilty line has: the learner names cause and line
//                                                             before the repair (cause.hpp). Repeated where several are right;
//                                                             optional
//     - tests: `*/coalesced_*`                                GoogleTest filter: they fail unsolved, pass solved
//     - version: `coalesced_32x32`                            the version that the score compares; optional
//     - needs: inspection                                     for tests that count accesses; optional
//     - traffic: `global`, `shared`, `atomics`                  the memory to which the version must not have more traffic
//                                                             than the lesson's, atomics: operations in global memory,
//                                                             accesses: those to global memory that are not atomic,
//                                                             loads: those of global and of shared memory,
//                                                             different: bytes of shared memory that a warp's loads need,
//                                                             each once, lanes: those that take part in an atomic access; optional
//     - streams: late, random                                 is checked with work in streams as late as it may, and in a random
//                                                             order, too; optional
//     - children: early                                       is checked with grids that a kernel launches before it goes on,
//                                                             too; optional
//     - minutes: 10                                           for a learner who has solved those before
//     What is asked.
//     ### `helper`                                            what is asked of this function; optional
//     ### Hint 1 ... ### Hint 2 ... ### Hint 3
//
// In the blank file a function shows its own text as its TODO. The exercise's text stands in the
// first function of the file that has none of its own, or where all have one, in the first. Every
// other function names that one.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// Why the file that an exercise starts from is wrong, and a text that only the guilty line has.
struct Cause {
    std::string name;
    std::string text;
};

struct FunctionTask {
    std::string function;
    std::string text;
};

struct Exercise {
    std::string name;
    std::vector<std::string> kernels{};
    std::string file{};
    std::string starts_from{};
    std::vector<Cause> causes{};  // any one of them is right; empty: the learner names none
    std::string tests{};
    std::string version{};
    bool needs_inspection = false;
    std::vector<std::string>
        traffic{};  // any of "global", "shared", "atomics", "accesses", "loads", "different", "lanes"
    std::vector<std::string> streams{};  // any of "late" and "random"
    bool early_children = false;
    int minutes = 0;
    std::string task{};
    std::vector<FunctionTask> function_tasks{};
    std::array<std::string, 3> hints{};

    bool by_hand() const { return !starts_from.empty(); }
    // Not of the core of its day.
    bool is_beyond() const { return file.starts_with("beyond/"); }
    // The whole task as one text: that of the exercise, then those of single functions.
    std::string whole_task() const;
};

struct ExerciseSheet {
    std::string title;
    std::string introduction;
    std::vector<Exercise> exercises;
};

// An error in the files of an exercise. The message starts with file and line.
class ExerciseError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// `file` is for messages. Throws ExerciseError.
ExerciseSheet parse_exercise_sheet(std::string_view text, std::string_view file);

}  // namespace course::tool
