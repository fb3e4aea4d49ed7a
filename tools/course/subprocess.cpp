#include "subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace course::tool {
namespace {

// As kill() takes it: the child, or with a minus its process group.
volatile std::sig_atomic_t running_child = 0;

void pass_on(int signal) {
    if (running_child != 0) kill(running_child, signal);
}

// A child of this process's group gets Ctrl-C from the terminal. Only a group of its own can be
// ended whole, with what a child has started itself.
enum class Group { kOfThisProcess, kOwn };

// While a child runs, this process does not die of what is meant for the child.
class SignalsToChild {
  public:
    explicit SignalsToChild(Group group) : group_(group) {
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            const bool is_of_terminal = kSignals[i] == SIGINT || kSignals[i] == SIGQUIT;
            struct sigaction action {};
            action.sa_handler = is_of_terminal && group == Group::kOfThisProcess ? SIG_IGN : pass_on;
            action.sa_flags = SA_RESTART;
            sigaction(kSignals[i], &action, &before_[i]);
        }
    }
    ~SignalsToChild() {
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            sigaction(kSignals[i], &before_[i], nullptr);
    }
    SignalsToChild(const SignalsToChild&) = delete;
    SignalsToChild& operator=(const SignalsToChild&) = delete;

    Group group() const { return group_; }

    // What the child should start with: this process's own dispositions, not SIG_IGN inherited
    // through exec.
    sigset_t defaults_of_child() const {
        sigset_t set;
        sigemptyset(&set);
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            if (before_[i].sa_handler != SIG_IGN) sigaddset(&set, kSignals[i]);
        }
        return set;
    }

  private:
    static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    Group group_;
    std::array<struct sigaction, kSignals.size()> before_{};
};

pid_t spawn(const Command& command, const posix_spawn_file_actions_t* actions,
            const SignalsToChild& signals) {
    if (command.empty()) throw std::invalid_argument("run: the command is empty");
    std::vector<char*> arguments;
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    const sigset_t defaults = signals.defaults_of_child();
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    const bool own_group = signals.group() == Group::kOwn;
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0));
    pid_t child = 0;
    const int error = posix_spawnp(&child, arguments[0], actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        throw std::runtime_error(fmt::format("cannot start {}: {}", command[0], std::strerror(error)));
    running_child = own_group ? -child : child;
    return child;
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) throw std::runtime_error(fmt::format("waitpid: {}", std::strerror(errno)));
    }
    running_child = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A pipe for a child's output; both ends are closed in the child but for what spawn makes its
// stdout and stderr.
class Pipe {
  public:
    Pipe() {
        if (pipe2(ends_, O_CLOEXEC) != 0)
            throw std::runtime_error(fmt::format("pipe2: {}", std::strerror(errno)));
    }
    ~Pipe() {
        close(ends_[0]);
        close_writing_end();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int writing_end() const { return ends_[1]; }
    void close_writing_end() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
    }
    // Is there something to read, or the end of it, before `deadline`?
    bool wait_until(std::chrono::steady_clock::time_point deadline) const {
        using std::chrono::milliseconds;
        pollfd reading = {ends_[0], POLLIN, 0};
        for (;;) {
            const auto left =
                std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
            const int ready = poll(&reading, 1, static_cast<int>(std::clamp<long>(left, 0, 60'000)));
            if (ready > 0) return true;
            if (ready == 0 && left <= 0) return false;
        }
    }
    // What there is next; empty at the end.
    std::string_view read_some() {
        ssize_t count = 0;
        do {
            count = read(ends_[0], buffer_.data(), buffer_.size());
        } while (count < 0 && errno == EINTR);
        return {buffer_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
    }

  private:
    int ends_[2] = {-1, -1};
    std::array<char, 4096> buffer_{};
};

}  // namespace

int run(const Command& command) {
    const SignalsToChild signals(Group::kOfThisProcess);
    return wait_for(spawn(command, nullptr, signals));
}

Captured capture(const Command& command, const std::function<void(std::string_view)>& on_line,
                 std::chrono::milliseconds limit) {
    Pipe pipe;
    const SignalsToChild signals(limit.count() > 0 ? Group::kOwn : Group::kOfThisProcess);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipe.writing_end(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipe.writing_end(), STDERR_FILENO);
    pid_t child = 0;
    try {
        child = spawn(command, &actions, signals);
        posix_spawn_file_actions_destroy(&actions);
    } catch (const std::runtime_error& error) {
        posix_spawn_file_actions_destroy(&actions);
        return {127, error.what()};
    }

    pipe.close_writing_end();
    Captured captured;
    std::size_t line_begin = 0;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
        captured.timed_out = limit.count() > 0 && !pipe.wait_until(deadline);
        captured.flooded = limit.count() > 0 && captured.output.size() > kMostOutput;
        if (captured.timed_out || captured.flooded) {
            kill(-child, SIGKILL);
            break;
        }
        const std::string_view part = pipe.read_some();
        if (part.empty()) break;
        captured.output += part;
        if (!on_line) continue;
        for (auto end = captured.output.find('\n', line_begin); end != std::string::npos;
             end = captured.output.find('\n', line_begin)) {
            on_line(std::string_view(captured.output).substr(line_begin, end - line_begin));
            line_begin = end + 1;
        }
    }
    captured.exit_code = wait_for(child);
    return captured;
}

std::string shell_quoted(const Command& command) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";
    std::string line;
    for (const std::string& argument : command) {
        if (!line.empty()) line += ' ';
        if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
            line += argument;
            continue;
        }
        line += '\'';
        for (const char character : argument) {
            if (character == '\'') {
                line += "'\\''";  // closes the quotes, a quote by itself, opens them again
            } else {
                line += character;
            }
        }
        line += '\'';
    }
    return line;
}

}  // namespace course::tool
