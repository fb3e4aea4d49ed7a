// Detects the host compiler: its name does not identify it.
#pragma once

#include <string>

namespace translator {

// Reads the compiler's predefined macros. False if the compiler cannot be run.
bool is_clang(const std::string& compiler);

}  // namespace translator
