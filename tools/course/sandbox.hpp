// Where what a student handed in is compiled and run: in the sandbox of ./course grade, which sets
// COURSE_SANDBOX to a program that starts others in it (scripts/sandbox.sh). Without the variable
// everything runs as the user.
#pragma once

#include <chrono>
#include <filesystem>

#include "subprocess.hpp"

namespace course::tool {

bool in_sandbox();

// Whether Ctrl-C ended a program with this exit code. In the sandbox a student may have chosen it.
bool is_interrupted(int exit_code);

// Compilers write to the build; they run none of the student's code.
Command compiling(Command command);
// The program can write nothing but `result`, if it is given, which arrives after the program.
Command running(Command command, const std::filesystem::path& result = {});

// For a compiler, which may never end: hostile templates. 0, no limit, outside the sandbox.
std::chrono::seconds limit_of_compiler();

}  // namespace course::tool
