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

}  // namespace translator
