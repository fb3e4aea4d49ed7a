// Runs other programs: arguments go to them as they are, without a shell in between.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// The program (looked up in PATH if it has no slash) and its arguments.
using Command = std::vector<std::string>;

// Runs `command` and waits for it. Returns its exit code, or 128 + n when signal n ended it. Ctrl-C reaches the
// child alone, which decides; SIGTERM and SIGHUP sent to this process are passed on to it.
// Throws std::runtime_error when the program cannot be started.
int run(const Command& command);

struct Captured {
    int exit_code = 0;
    std::string output;  // stdout and stderr together
};

// As run, but keeps what the child prints; `on_line` sees each line, without its end, as it comes.
// A program that cannot be started: exit code 127, and the reason as output.
Captured capture(const Command& command, const std::function<void(std::string_view)>& on_line = {});

// The command as it would be typed into a shell.
std::string shell_quoted(const Command& command);

}  // namespace course::tool
