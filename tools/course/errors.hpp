// What can go wrong, by the exit code that it ends in.
#pragma once

#include <stdexcept>

namespace course::tool {

// Documented in `./course --help`. 128 + n: a program that was run ended by signal n.
enum ExitCode : int { kSuccess = 0, kFailed = 1, kUsage = 2, kBuildFailed = 3, kInterrupted = 128 + 2 };

// What was asked for makes no sense; the message says what would.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A build failed; what it printed has been shown.
class BuildError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Ctrl-C, which the program that was running got too.
class Interrupted : public std::runtime_error {
  public:
    Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace course::tool
