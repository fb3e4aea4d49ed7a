#pragma once

namespace course::tool {

// Reads the command line of ./course and does what it says. Returns the exit code (errors.hpp).
int run_command_line(int argc, const char* const* argv);

}  // namespace course::tool
