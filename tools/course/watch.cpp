#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "commands.hpp"
#include "errors.hpp"
#include "file_watcher.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};  // while a check runs
constexpr std::chrono::milliseconds kWhileIdle{1000};

volatile std::sig_atomic_t interrupted = 0;

// On Ctrl-C, the wait ends, and the command exits cleanly.
class CtrlC {
  public:
    CtrlC() {
        interrupted = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { interrupted = 1; };
        sigaction(SIGINT, &action, &before_);
    }
    ~CtrlC() { sigaction(SIGINT, &before_, nullptr); }
    CtrlC(const CtrlC&) = delete;
    CtrlC& operator=(const CtrlC&) = delete;

  private:
    struct sigaction before_ {};
};

// A check that can be cancelled. It then ends cleanly: its build removes incomplete files, and no
// result is recorded.
class CheckInBackground {
  public:
    // A fork of this process runs the check in a process group of its own, because this process
    // handles Ctrl-C and saved files.
    CheckInBackground(const WorkbookEntry& entry, const Checkout& checkout, const CheckCommand& command) {
        std::fflush(stdout);
        child_ = fork();
        if (child_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
        if (child_ > 0) return;
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGINT);
        std::signal(SIGINT, SIG_DFL);
        const int exit_code = check_in_child(entry, checkout, command);
        std::fflush(stdout);
        _exit(exit_code);
    }
    ~CheckInBackground() { cancel(); }
    CheckInBackground(const CheckInBackground&) = delete;
    CheckInBackground& operator=(const CheckInBackground&) = delete;

    // Its exit code once it has ended; kInterrupted if it was cancelled.
    std::optional<int> result() {
        if (child_ != 0 && waitpid(child_, &status_, WNOHANG) == child_) child_ = 0;
        if (child_ != 0) return std::nullopt;
        return WIFEXITED(status_) ? WEXITSTATUS(status_) : kInterrupted;
    }

    void cancel() {
        while (!result()) {
            // Repeatedly: between two programs that the child runs, no process may receive it.
            kill(-child_, SIGINT);
            std::this_thread::sleep_for(kPollInterval);
        }
    }

  private:
    static int check_in_child(const WorkbookEntry& entry, const Checkout& checkout,
                              const CheckCommand& command) {
        try {
            Learner learner(checkout);
            CheckCommand one_failure = command;
            one_failure.failures_shown = 1;
            return check_and_record(learner, entry, checkout, one_failure).solved() ? kSuccess : kFailed;
        } catch (const Interrupted&) {
            return kInterrupted;
        } catch (const BuildError& error) {
            fmt::print(stderr, "course: {}\n", error.what());
            return kBuildFailed;
        } catch (const std::exception& error) {
            fmt::print(stderr, "course: {}\n", error.what());
            return kFailed;
        }
    }

    pid_t child_ = 0;
    int status_ = 0;
};

void clear_screen() {
    if (isatty(STDOUT_FILENO) == 1) fmt::print("\033[H\033[2J");
}

// Checks until the answer is right. Every save cancels the running check, which is then outdated,
// and starts a new one. Throws Interrupted.
void check_until_solved(const WorkbookEntry& entry, const Checkout& checkout, const WatchCommand& command,
                        FileWatcher& watcher) {
    for (;;) {
        CheckInBackground check(entry, checkout, command.check);
        bool saved = false, told = false;
        while (!saved) {
            if (interrupted != 0) throw Interrupted();
            const auto result = check.result();
            if (result == kSuccess) return;
            if (result && !told) {
                fmt::print("{}\n", styled("  Checked again when you save. Ctrl-C leaves.", kQuiet, stdout));
                std::fflush(stdout);
                told = true;
            }
            saved = watcher.wait(result ? kWhileIdle : kPollInterval);
        }
        check.cancel();
        clear_screen();
    }
}

// After the last exercise of a day.
void print_day_done(const Learner& learner, const Chapter& chapter) {
    if (learner.first_unsolved(&chapter)) return;
    const auto count = chapter.sheet.exercises.size();
    fmt::print("{}: {} exercise{} solved\n\n", styled(chapter.name + " done", kGood, stdout), count,
               count == 1 ? "" : "s");
}

}  // namespace

int watch_exercise(const Checkout& checkout, const WatchCommand& command) {
    const CtrlC ctrl_c;
    Learner learner(checkout);
    WorkbookEntry entry = learner.choose(command.check.name);
    try {
        for (;;) {
            print_exercise(learner, entry);
            fmt::print("\n");
            FileWatcher watcher({learner.book.mine(entry).parent_path()},
                                command.poll ? FileWatcher::Method::kPolling : FileWatcher::Method::kBest);
            check_until_solved(entry, checkout, command, watcher);
            learner.logbook.read();
            print_day_done(learner, *entry.chapter);
            const auto next = learner.first_unsolved(command.check.name ? entry.chapter : nullptr);
            if (!next) return kSuccess;
            entry = *next;
        }
    } catch (const Interrupted&) {
        fmt::print("\n");
        return kSuccess;
    }
}

}  // namespace course::tool
