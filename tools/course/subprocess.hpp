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

// A program that runs beside others, with settings that only it has: "NAME=VALUE" each, in place of
// this process's own.
struct Job {
    Command command;
    std::vector<std::string> settings;
};

struct JobObserver {
    // Each line, without its end, as it comes; jobs by their number. true: a new part of the job
    // begins, which is given the whole time again.
    std::function<bool(std::size_t, std::string_view)> on_line{};
    // In the order of the jobs, whichever ends first. false: that was enough, what still runs is
    // killed.
    std::function<bool(std::size_t, const Captured&)> on_end;
};

// Runs all jobs at once, each as capture does. The time of a job is up `limit` after the end of the
// one before it: it is given what it would have alone, though it shares the cores. An observer that
// throws ends them all.
void capture_together(const std::vector<Job>& jobs, const JobObserver& observer,
                      std::chrono::milliseconds limit);

// The command as it would be typed into a shell.
std::string shell_quoted(const Command& command);

}  // namespace course::tool
