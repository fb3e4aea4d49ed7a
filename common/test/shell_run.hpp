// Runs a program in a shell, for tests of its output and its exit code.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace course {

struct ShellOutcome {
    int exit_code = -1;  // -1: ended by a signal, or not started
    std::string text;    // stdout and stderr
};

// Runs `command` as if it were typed into a shell.
inline ShellOutcome run_in_shell(const std::string& command) {
    ShellOutcome outcome;
    std::FILE* const pipe = popen(("{ " + command + "; } 2>&1 </dev/null").c_str(), "r");
    if (pipe == nullptr) return outcome;
    for (int c = std::getc(pipe); c != EOF; c = std::getc(pipe))
        outcome.text += static_cast<char>(c);
    const int status = pclose(pipe);
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    return outcome;
}

}  // namespace course
