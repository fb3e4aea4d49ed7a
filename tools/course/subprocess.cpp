#include "subprocess.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cuda_on_cpu/process/child_process.hpp"

namespace course::tool {
namespace {

using cuda_on_cpu::ChildProgram;

// Arguments of kill(): process ids of children, or negative ids of their process groups; 0:
// unused.
std::array<volatile std::sig_atomic_t, 8> running_children{};

// The last signal that arrived while children run. A child that is being started receives it, too.
volatile std::sig_atomic_t last_signal = 0;

void note(int signal) {
    last_signal = signal;
}

void pass_on(int signal) {
    last_signal = signal;
    for (const auto& child : running_children)
        if (child != 0) kill(child, signal);
}

// A child in this process's group receives Ctrl-C from the terminal. Only a group of its own can
// be killed as a whole, with the processes that the child has started.
enum class Group { kOfThisProcess, kOwn };

// Keeps this process alive while children run: it passes signals on to them.
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

    // The signals that a child resets to their defaults: an ignored signal stays ignored.
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

// Blocks signals until pass_on() can find the child that is being started.
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

// Starts `program` with the right signal settings.
pid_t spawn(ChildProgram program, const SignalsToChildren& signals) {
    if (program.arguments.empty()) throw std::invalid_argument("run: the command is empty");
    const auto place = std::ranges::find(running_children, 0);
    if (place == running_children.end())
        throw std::invalid_argument(
            fmt::format("run: more than {} programs at once", running_children.size()));

    const sigset_t defaults = signals.defaults_of_child();
    const SignalsHeldBack held_back;
    program.default_signals = &defaults;
    program.blocked_signals = &held_back.before();
    program.own_group = signals.group() == Group::kOwn;
    pid_t child = 0;
    if (const int error = cuda_on_cpu::start_child(program, child); error != 0)
        throw std::runtime_error(
            fmt::format("cannot start {}: {}", program.arguments[0], std::strerror(error)));
    *place = program.own_group ? -child : child;
    if (last_signal != 0) kill(*place, last_signal);  // the signal arrived before this child was started
    // A Ctrl-C while signals were blocked may have arrived before the child joined the group.
    sigset_t pending;
    if (signals.group() == Group::kOfThisProcess && sigpending(&pending) == 0) {
        for (const int signal : {SIGINT, SIGQUIT})
            if (sigismember(&pending, signal) == 1) kill(*place, signal);
    }
    return child;
}

void forget(pid_t child) {
    for (auto& running : running_children)
        if (running == child || running == -child) running = 0;
}

// A running program and its output so far. The destructor ends the program.
class Child {
  public:
    Child(const Job& job, const SignalsToChildren& signals) {
        try {
            child_ = spawn({.arguments = job.command,
                            .settings = job.settings,
                            .input_file = "/dev/null",
                            .output = pipe_.writing_end(),
                            .errors = cuda_on_cpu::Errors::with_output},
                           signals);
        } catch (const std::runtime_error& error) {
            captured_ = {127, error.what()};
        }
        pipe_.close_writing_end();
    }
    ~Child() {
        if (child_ != 0) end();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    bool is_running() const { return child_ != 0; }
    // A child may close its output and continue to run. No event of poll() reports its end.
    bool is_silent() const { return is_running() && output_ended_; }
    // With -1 for a child that has ended, because poll() ignores negative descriptors.
    pollfd reading() const { return {is_running() && !output_ended_ ? pipe_.reading_end() : -1, POLLIN, 0}; }
    const Captured& captured() const { return captured_; }

    // Reads the available output. Returns whether a new part has begun.
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
        if (const auto exit_code = cuda_on_cpu::exit_code_if_ended(child_)) note_end(*exit_code);
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
        kill(child_, SIGKILL);  // the child may have left its group
        note_end(cuda_on_cpu::wait_for_child(child_));
    }
    void note_end(int exit_code) {
        captured_.exit_code = exit_code;
        forget(child_);
        child_ = 0;
    }

    cuda_on_cpu::OutputPipe pipe_;
    pid_t child_ = 0;
    Captured captured_;
    std::size_t line_begin_ = 0;
    bool output_ended_ = false;
};

// Waits until a child prints something or closes its output, or a silent child may have ended.
// Returns false if the time is up.
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
    const pid_t child = spawn({.arguments = command}, signals);
    const int exit_code = cuda_on_cpu::wait_for_child(child);
    forget(child);
    return exit_code;
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
    std::chrono::milliseconds patience{};
    for (std::size_t next = 0; next < jobs.size();) {
        if (!children[next]->is_running()) {
            if (!observer.on_end(next, children[next]->captured())) return;
            ++next;
            if (has_limit && observer.patience) patience = observer.patience();
            deadline = std::chrono::steady_clock::now() + (patience.count() > 0 ? patience : limit);
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
            if (new_part && i == next && patience.count() == 0)
                deadline = std::chrono::steady_clock::now() + limit;
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
