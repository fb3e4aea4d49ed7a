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
#include <memory>
#include <optional>
#include <stdexcept>

extern char** environ;

namespace course::tool {
namespace {

// As kill() takes them: children, or with a minus their process groups; 0: nothing runs here.
std::array<volatile std::sig_atomic_t, 8> running_children{};

// The last signal that came while children run: one that is being started gets it, too.
volatile std::sig_atomic_t last_signal = 0;

void note(int signal) {
    last_signal = signal;
}

void pass_on(int signal) {
    last_signal = signal;
    for (const auto& child : running_children)
        if (child != 0) kill(child, signal);
}

// A child of this process's group gets Ctrl-C from the terminal. Only a group of its own can be
// ended whole, with what a child has started itself.
enum class Group { kOfThisProcess, kOwn };

// While children run, this process does not die of what is meant for them.
class SignalsToChildren {
  public:
    explicit SignalsToChildren(Group group) : group_(group) {
        last_signal = 0;
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            sigaction(kSignals[i], nullptr, &before_[i]);
            if (before_[i].sa_handler == SIG_IGN) continue;  // nohup, for instance
            const bool is_of_terminal = kSignals[i] == SIGINT || kSignals[i] == SIGQUIT;
            struct sigaction action {};
            action.sa_handler = is_of_terminal && group == Group::kOfThisProcess ? note : pass_on;
            action.sa_flags = SA_RESTART;
            sigaction(kSignals[i], &action, nullptr);
        }
    }
    ~SignalsToChildren() {
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            sigaction(kSignals[i], &before_[i], nullptr);
    }
    SignalsToChildren(const SignalsToChildren&) = delete;
    SignalsToChildren& operator=(const SignalsToChildren&) = delete;

    Group group() const { return group_; }

    // What a child should start with: an ignored signal stays ignored.
    sigset_t defaults_of_child() const {
        sigset_t set;
        sigemptyset(&set);
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            if (before_[i].sa_handler != SIG_IGN) sigaddset(&set, kSignals[i]);
        }
        return set;
    }

    static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

  private:
    Group group_;
    std::array<struct sigaction, kSignals.size()> before_{};
};

// Holds signals back until a child that is being started can be found by pass_on().
class SignalsHeldBack {
  public:
    SignalsHeldBack() {
        sigset_t set;
        sigemptyset(&set);
        for (const int signal : SignalsToChildren::kSignals)
            sigaddset(&set, signal);
        pthread_sigmask(SIG_BLOCK, &set, &before_);
    }
    ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsHeldBack(const SignalsHeldBack&) = delete;
    SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

    const sigset_t& before() const { return before_; }

  private:
    sigset_t before_{};
};

// This process's environment with other `settings`, and what execve takes of it.
class Environment {
  public:
    explicit Environment(const std::vector<std::string>& settings) : variables_(settings) {
        for (char** variable = environ; *variable != nullptr; ++variable) {
            if (!is_set(*variable)) variables_.emplace_back(*variable);
        }
        for (std::string& variable : variables_)
            pointers_.push_back(variable.data());
        pointers_.push_back(nullptr);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

    char** pointers() { return pointers_.data(); }

  private:
    bool is_set(std::string_view variable) const {
        const std::string_view name_and_sign = variable.substr(0, variable.find('=') + 1);
        return std::ranges::any_of(
            variables_, [&](const std::string& known) { return known.starts_with(name_and_sign); });
    }

    std::vector<std::string> variables_;
    std::vector<char*> pointers_;
};

pid_t spawn(const Job& job, const posix_spawn_file_actions_t* actions, const SignalsToChildren& signals) {
    if (job.command.empty()) throw std::invalid_argument("run: the command is empty");
    std::vector<char*> arguments;
    for (const std::string& argument : job.command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const auto place = std::ranges::find(running_children, 0);
    if (place == running_children.end())
        throw std::invalid_argument(
            fmt::format("run: more than {} programs at once", running_children.size()));

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    const sigset_t defaults = signals.defaults_of_child();
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    const SignalsHeldBack held_back;
    posix_spawnattr_setsigmask(&attributes, &held_back.before());
    const bool own_group = signals.group() == Group::kOwn;
    posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                             (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    Environment environment(job.settings);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, arguments[0], actions, &attributes, arguments.data(), environment.pointers());
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        throw std::runtime_error(fmt::format("cannot start {}: {}", arguments[0], std::strerror(error)));
    *place = own_group ? -child : child;
    if (last_signal != 0) kill(*place, last_signal);  // it came before this child
    return child;
}

// The exit code of a child that has ended; while it runs, nothing.
std::optional<int> exit_code_of(pid_t child, int options) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, options)) < 0) {
        if (errno != EINTR) throw std::runtime_error(fmt::format("waitpid: {}", std::strerror(errno)));
    }
    if (ended == 0) return std::nullopt;
    for (auto& running : running_children)
        if (running == child || running == -child) running = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int wait_for(pid_t child) {
    return exit_code_of(child, 0).value();
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

    int reading_end() const { return ends_[0]; }
    int writing_end() const { return ends_[1]; }
    void close_writing_end() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
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

// A program that runs, and what it has printed so far. It is gone when this is.
class Child {
  public:
    Child(const Job& job, const SignalsToChildren& signals) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, pipe_.writing_end(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, pipe_.writing_end(), STDERR_FILENO);
        try {
            child_ = spawn(job, &actions, signals);
        } catch (const std::runtime_error& error) {
            captured_ = {127, error.what()};
        }
        posix_spawn_file_actions_destroy(&actions);
        pipe_.close_writing_end();
    }
    ~Child() {
        if (child_ != 0) end();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    bool is_running() const { return child_ != 0; }
    // It may have closed its output and go on: no event tells when such a child ends.
    bool is_silent() const { return is_running() && output_ended_; }
    // With -1 for what has ended, which poll() passes over.
    pollfd reading() const { return {is_running() && !output_ended_ ? pipe_.reading_end() : -1, POLLIN, 0}; }
    const Captured& captured() const { return captured_; }

    // Reads what there is next. Has a new part begun?
    bool read_some(const std::function<bool(std::string_view)>& on_line) {
        const std::string_view part = pipe_.read_some();
        if (part.empty()) {
            output_ended_ = true;
            wait_if_ended();
            return false;
        }
        captured_.output += part;
        bool new_part = false;
        const std::string_view output = captured_.output;
        for (auto end = output.find('\n', line_begin_); end != output.npos;
             end = output.find('\n', line_begin_)) {
            new_part |= on_line(output.substr(line_begin_, end - line_begin_));
            line_begin_ = end + 1;
        }
        return new_part;
    }
    void wait_if_ended() {
        if (const auto exit_code = exit_code_of(child_, WNOHANG)) {
            captured_.exit_code = *exit_code;
            child_ = 0;
        }
    }
    void end_after_its_time() {
        captured_.timed_out = true;
        end();
    }
    void end_if_it_floods() {
        captured_.flooded = captured_.output.size() > kMostOutput;
        if (captured_.flooded && is_running()) end();
    }

  private:
    void end() {
        kill(-child_, SIGKILL);
        kill(child_, SIGKILL);  // it may have left its group
        captured_.exit_code = wait_for(child_);
        child_ = 0;
    }

    Pipe pipe_;
    pid_t child_ = 0;
    Captured captured_;
    std::size_t line_begin_ = 0;
    bool output_ended_ = false;
};

// Waits until a child prints something or closes its output, or a silent one may have ended, or the
// time is up: false.
bool wait_for_output(const std::vector<std::unique_ptr<Child>>& children, std::vector<pollfd>& reading,
                     std::chrono::steady_clock::time_point deadline, bool has_limit) {
    using std::chrono::milliseconds;
    constexpr long kLookAtSilent = 10;  // ms
    reading.clear();
    for (const auto& child : children)
        reading.push_back(child->reading());
    const bool any_silent =
        std::ranges::any_of(children, [](const auto& child) { return child->is_silent(); });
    for (;;) {
        const auto left =
            std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
        long wait = has_limit ? std::clamp<long>(left, 0, 60'000) : -1;
        if (any_silent) wait = has_limit ? std::min(wait, kLookAtSilent) : kLookAtSilent;
        const int ready = poll(reading.data(), reading.size(), static_cast<int>(wait));
        if (ready > 0) return true;
        if (ready == 0 && has_limit && left <= 0) return false;
        if (any_silent) return true;
    }
}

}  // namespace

int run(const Command& command) {
    const SignalsToChildren signals(Group::kOfThisProcess);
    return wait_for(spawn({command, {}}, nullptr, signals));
}

void capture_together(const std::vector<Job>& jobs, const JobObserver& observer,
                      std::chrono::milliseconds limit) {
    const bool has_limit = limit.count() > 0;
    const SignalsToChildren signals(has_limit ? Group::kOwn : Group::kOfThisProcess);
    std::vector<std::unique_ptr<Child>> children;
    for (const Job& job : jobs)
        children.push_back(std::make_unique<Child>(job, signals));

    std::vector<pollfd> reading;
    auto deadline = std::chrono::steady_clock::now() + limit;
    for (std::size_t next = 0; next < jobs.size();) {
        if (!children[next]->is_running()) {
            if (!observer.on_end(next, children[next]->captured())) return;
            ++next;
            deadline = std::chrono::steady_clock::now() + limit;
            continue;
        }
        if (!wait_for_output(children, reading, deadline, has_limit)) {
            children[next]->end_after_its_time();
            continue;
        }
        for (std::size_t i = next; i < jobs.size(); ++i) {
            if (children[i]->is_silent()) children[i]->wait_if_ended();
            if (reading[i].revents == 0) continue;
            const bool new_part = children[i]->read_some(
                [&](std::string_view line) { return observer.on_line && observer.on_line(i, line); });
            if (new_part && i == next) deadline = std::chrono::steady_clock::now() + limit;
            if (has_limit) children[i]->end_if_it_floods();
        }
    }
}

Captured capture(const Command& command, const std::function<void(std::string_view)>& on_line,
                 std::chrono::milliseconds limit) {
    Captured captured;
    JobObserver observer{.on_end = [&](std::size_t, const Captured& all) {
        captured = all;
        return true;
    }};
    observer.on_line = [&](std::size_t, std::string_view line) {
        if (on_line) on_line(line);
        return false;
    };
    capture_together({{command, {}}}, observer, limit);
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
