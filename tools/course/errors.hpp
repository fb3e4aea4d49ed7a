// Errors and their exit codes.
#pragma once

#include <stdexcept>

namespace course::tool {

// Documented in `./course --help`. 128 + n: signal n ended the program that was run.
enum ExitCode : int { kSuccess = 0, kFailed = 1, kUsage = 2, kBuildFailed = 3, kInterrupted = 128 + 2 };

// Invalid usage; the message describes valid usage.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A failed build, whose output has already been shown.
class BuildError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Ctrl-C, which the running program has received, too.
class Interrupted : public std::runtime_error {
  public:
    Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace course::tool
