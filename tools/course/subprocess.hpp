// Runs other programs. Arguments are passed unchanged, without a shell.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

// The program (looked up in PATH if it has no slash) and its arguments.
using Command = std::vector<std::string>;

// Runs `command` and waits for it. Returns its exit code, or 128 + n if signal n ended it. Only
// the child reacts to Ctrl-C; SIGTERM and SIGHUP sent to this process are passed on to it. Throws
// std::runtime_error if the program cannot be started.
int run(const Command& command);

struct Captured {
    int exit_code = 0;
    std::string output;      // stdout and stderr together
    bool timed_out = false;  // killed because it exceeded its time limit
    bool flooded = false;    // killed because it printed more than kMostOutput bytes
};

inline constexpr std::size_t kMostOutput = 4 << 20;

// The same as run, but captures the child's output, and gives it no input. `on_line` is called for
// each line, without its end, when it arrives. With a `limit` other than 0, a child that runs
// longer, or prints more than kMostOutput bytes, is killed with all processes that it has started.
// A program that cannot be started has exit code 127, and the reason as output.
Captured capture(const Command& command, const std::function<void(std::string_view)>& on_line = {},
                 std::chrono::milliseconds limit = {});

// A program that runs concurrently with others. Its `settings` ("NAME=VALUE") override environment
// variables of this process.
struct Job {
    Command command;
    std::vector<std::string> settings;
};

struct JobObserver {
    // Called for each line, without its end, when it arrives, with the number of the job. Returns
    // true if a new part of the job begins, which restarts its time limit.
    std::function<bool(std::size_t, std::string_view)> on_line{};
    // Called in the order of the jobs, whichever ends first. If it returns false, all running jobs
    // are killed.
    std::function<bool(std::size_t, const Captured&)> on_end;
    // Called after on_end: the time that the next job may still take, whatever parts it begins. 0:
    // the usual limit.
    std::function<std::chrono::milliseconds()> patience{};
};

// Runs all jobs at once, each as capture does. The time of a job ends `limit` after the end of the
// job before it, so it has at least as much time as it would have alone, although it shares the
// cores. An exception of the observer ends all jobs.
void capture_together(const std::vector<Job>& jobs, const JobObserver& observer,
                      std::chrono::milliseconds limit);

// The command as it would be typed into a shell.
std::string shell_quoted(const Command& command);

}  // namespace course::tool
