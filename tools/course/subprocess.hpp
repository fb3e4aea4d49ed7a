// Runs other programs: arguments go to them as they are, without a shell in between.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// The program (looked up in PATH if it has no slash) and its arguments.
using Command = std::vector<std::string>;

// Runs `command` and waits for it. Returns its exit code, or 128 + n when signal n ended it. Ctrl-C
// reaches the child alone, which decides; SIGTERM and SIGHUP sent to this process are passed on to
// it. Throws std::runtime_error when the program cannot be started.
int run(const Command& command);

struct Captured {
    int exit_code = 0;
    std::string output;      // stdout and stderr together
    bool timed_out = false;  // ended because it took longer than it may
    bool flooded = false;    // ended because it printed more than kMostOutput bytes
};

inline constexpr std::size_t kMostOutput = 4 << 20;

// As run, but keeps what the child prints, and gives it nothing to read; `on_line` sees each line,
// without its end, as it comes. A child that runs longer than `limit` is killed with all that it
// started, and then also one that prints more than kMostOutput bytes; 0: there is no limit. A
// program that cannot be started: exit code 127, and the reason as output.
Captured capture(const Command& command, const std::function<void(std::string_view)>& on_line = {},
                 std::chrono::milliseconds limit = {});

// The command as it would be typed into a shell.
std::string shell_quoted(const Command& command);

}  // namespace course::tool
