#include <fmt/format.h>

#include <csignal>

#include "commands.hpp"
#include "errors.hpp"
#include "file_watcher.hpp"
#include "learner.hpp"
#include "styles.hpp"

namespace course::tool {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// Ctrl-C ends the waiting, and with it the command, in good order.
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

// Until the file is saved; throws Interrupted.
void wait_for_save(FileWatcher& watcher) {
    fmt::print("{}\n", styled("  Checked again when you save. Ctrl-C leaves.", kQuiet, stdout));
    std::fflush(stdout);
    while (!watcher.wait(std::chrono::seconds(1))) {
        if (interrupted != 0) throw Interrupted();
    }
}

}  // namespace

int watch_exercise(const Checkout& checkout, const WatchCommand& command) {
    const CtrlC ctrl_c;
    Desk desk(checkout);
    WorkbookEntry entry = desk.choose(command.check.name);
    try {
        for (;;) {
            print_exercise(desk, entry);
            fmt::print("\n");
            FileWatcher watcher({desk.book.mine(entry).parent_path()},
                                command.poll ? FileWatcher::Method::kPolling : FileWatcher::Method::kBest);
            while (!check_one(desk, entry, checkout, command.check))
                wait_for_save(watcher);
            const auto next = desk.first_unsolved(command.check.name ? entry.chapter : nullptr);
            if (!next) return kSuccess;
            entry = *next;
        }
    } catch (const Interrupted&) {
        fmt::print("\n");
        return kSuccess;
    }
}

}  // namespace course::tool
