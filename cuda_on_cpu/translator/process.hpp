// Runs a program for the compiler, and reports it if the program cannot be started.
#pragma once

#include <string>
#include <vector>

namespace translator {

// Runs `arguments[0]` with the given arguments, without a shell, and returns its exit code (128 + n
// for signal n).
int run_program(const std::vector<std::string>& arguments);
// The same; what it writes to its standard output is appended to `output`.
int run_program(const std::vector<std::string>& arguments, std::string& output);

// Runs a compiler whose output is a file. If it fails for something that is known not to be here,
// the first line of the errors says what, and what to do.
int run_compiler(std::vector<std::string> arguments);

}  // namespace translator
