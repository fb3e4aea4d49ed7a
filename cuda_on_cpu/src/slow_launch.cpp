#include "slow_launch.hpp"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "block.hpp"
#include "cuda_on_cpu/launch.h"
#include "environment.hpp"
#include "fault.hpp"
#include "kernel_line.hpp"
#include "thread_name.hpp"

namespace cuda_on_cpu {
namespace {

constexpr int kSignal = SIGUSR2;
// Many, because a polling thread is in the stand-in about as often as in its kernel.
constexpr int kAttempts = 50;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(5);
// Seconds after which a launch in a user's own program is reported.
constexpr unsigned kUsualNotice = 10;

// The answer of an OS thread to the signal. One OS thread is sampled at a time.
struct Answer {
    std::atomic<bool> given{false};
    bool runs_block = false;
    std::array<char, 64> kernel{};
    ThreadName thread{};
    std::array<void*, 32> frames{};
    std::size_t frame_count = 0;
};

struct OsThread {
    pthread_t handle;
    const BlockRunner* runner;
};

struct Watch {
    std::mutex mutex;
    std::vector<OsThread> os_threads;  // OS threads that may run blocks
    std::atomic<unsigned> running{0};  // launches
    std::atomic<unsigned> begun{0};    // launches
    std::atomic<unsigned> outputs{0};
};

// Never destroyed: the watching thread and the workers outlive main().
Watch& watch() {
    static Watch& only = *new Watch;
    return only;
}
Answer answer;

// The instructions at which a kernel may be left: those of the kernel itself that earlier samples
// have found, none of a function that it calls.
struct Exits {
    std::atomic<bool> wanted{false};
    std::atomic<bool> used{false};
    std::array<std::atomic<void*>, 256> instructions{};
    std::size_t count = 0;
    const std::string* message = nullptr;  // never destroyed, either
};
Exits exits;

[[noreturn]] void end_kernel() {
    block_runner().fail(cudaErrorLaunchTimeout, *exits.message, Site{"", 0});
}

bool may_leave_from(void* instruction) {
    return std::ranges::any_of(exits.instructions,
                               [=](const std::atomic<void*>& each) { return each == instruction; });
}

// Runs in the signal handler, so it must not allocate, print or lock.
void note_frames(const ucontext_t& context) {
    std::array<void*, 40> frames;
    const auto count =
        static_cast<std::size_t>(frames_in_handler(frames.data(), static_cast<int>(frames.size())));
#if defined(__x86_64__)
    auto* const interrupted = reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    auto* const interrupted = reinterpret_cast<void*>(context.uc_mcontext.pc);
#endif
    // The first frames are the handler's own.
    std::size_t begin = 0;
    while (begin < count && frames[begin] != interrupted)
        ++begin;
    answer.frames[0] = interrupted;
    answer.frame_count = 1;
    for (std::size_t i = begin + 1; i < count && answer.frame_count < answer.frames.size(); ++i)
        // The address of the call, not of the instruction after it.
        answer.frames[answer.frame_count++] = static_cast<char*>(frames[i]) - 1;
}

void tell_where(int, siginfo_t*, void* context) {
    BlockRunner* const runner = runner_of_os_thread;
    answer.runs_block = runner != nullptr && runner->runs_block();
    if (answer.runs_block) {
        const std::string& name = runner->launch().name;
        const std::size_t length = std::min(name.size(), answer.kernel.size() - 1);
        std::copy_n(name.data(), length, answer.kernel.data());
        answer.kernel[length] = '\0';
        answer.thread = runner->in_rows() ? name_of_running_block() : name_of_running_thread();
        note_frames(*static_cast<const ucontext_t*>(context));
        if (exits.wanted && may_leave_from(answer.frames[0]) && leave_kernel(context, end_kernel))
            exits.used = true;
    }
    answer.given = true;
}

bool interrupt(pthread_t os_thread) {
    answer.given = false;
    if (pthread_kill(os_thread, kSignal) != 0) return false;
    for (int i = 0; i < 200 && !answer.given; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return answer.given && answer.runs_block;
}

// The line that a running kernel is in; `answer` has its name and thread. Empty: none. The caller
// holds the lock.
std::string line_of_running_kernel() {
    for (int attempt = 0; attempt < kAttempts && watch().running > 0; ++attempt) {
        for (const OsThread& os_thread : watch().os_threads) {
            if (!os_thread.runner->is_seen_running() || !interrupt(os_thread.handle)) continue;
            std::string line = kernel_line(std::span(answer.frames).first(answer.frame_count));
            if (!line.empty()) return line;
        }
        std::this_thread::sleep_for(kBetweenAttempts);
    }
    return {};
}

// False: no kernel is running.
bool tell_where_kernel_is(unsigned seconds) {
    const std::scoped_lock lock(watch().mutex);
    const std::string line = line_of_running_kernel();
    if (line.empty()) return false;
    // The kernel's output so far, because the program may be ended after this line.
    std::fflush(stdout);
    std::fprintf(stderr, "cuda_on_cpu: kernel %s: still running after %u s, in %s, %s%s\n",
                 answer.kernel.data(), seconds, line.c_str(), answer.thread.data(),
                 environment().notice_is_set ? "" : " (CUDA_ON_CPU_LIMIT=SECONDS ends a kernel)");
    return true;
}

// Ends the block on that OS thread, which neither waits nor ends by itself, at an instruction of
// its kernel.
bool end_block(const OsThread& os_thread, unsigned seconds) {
    for (int attempt = 0; attempt < 2 * kAttempts; ++attempt) {
        if (!os_thread.runner->is_seen_running()) return true;
        exits.used = false;
        const bool answered = interrupt(os_thread.handle);
        if (exits.used || !answered) return true;
        const std::string line = kernel_line(std::span(answer.frames).first(1));
        if (!line.empty() && !may_leave_from(answer.frames[0])) {
            if (exits.message == nullptr)
                exits.message = new std::string("has run for " + std::to_string(seconds) +
                                                " s (CUDA_ON_CPU_LIMIT), in " + line);
            exits.instructions[exits.count++ % exits.instructions.size()] = answer.frames[0];
        }
        exits.wanted = true;
        std::this_thread::sleep_for(kBetweenAttempts);
    }
    return false;
}

void end_launches(unsigned seconds) {
    const std::scoped_lock lock(watch().mutex);
    delete std::exchange(exits.message, nullptr);
    const bool ended = std::ranges::all_of(watch().os_threads,
                                           [=](const OsThread& each) { return end_block(each, seconds); });
    exits.wanted = false;
    if (ended) return;
    const std::string line = line_of_running_kernel();
    std::fprintf(stderr,
                 "cuda_on_cpu: a kernel has run for %u s (CUDA_ON_CPU_LIMIT)%s%s: the program ends here\n",
                 seconds, line.empty() ? "" : ", in ", line.c_str());
    std::_Exit(1);
}

[[noreturn]] void watch_launches() {
    const Environment& settings = environment();
    unsigned silent = 0;  // seconds since the program has printed
    unsigned seen_outputs = 0;
    bool told = false;
    unsigned running = 0;  // seconds since the last launch began
    unsigned seen_launches = 0;
    for (;;) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        if (const unsigned begun = watch().begun; begun != seen_launches || watch().running == 0) {
            seen_launches = begun;
            running = 0;
        } else if (++running >= settings.limit && settings.limit > 0) {
            end_launches(running);
        }
        if (!settings.notice_is_set) {
            if (running >= kUsualNotice && !told && own_program) told = tell_where_kernel_is(running);
        } else if (const unsigned outputs = watch().outputs; outputs != seen_outputs) {
            seen_outputs = outputs;
            silent = 0;
            told = false;
        } else if (++silent >= settings.notice && !told) {
            told = tell_where_kernel_is(settings.notice);
        }
    }
}

void start_watching() {
    std::array<void*, 1> frame;
    backtrace(frame.data(), 1);  // its first call loads a library, which a signal handler must not
    struct sigaction action {};
    sigaction(kSignal, nullptr, &action);
    const bool is_free = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
    if (!is_free && !environment().notice_is_set && environment().limit == 0)
        return;  // the program itself uses this signal
    action = {};
    action.sa_sigaction = tell_where;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(kSignal, &action, nullptr);
    std::thread(watch_launches).detach();
}

}  // namespace

WatchedLaunch::WatchedLaunch()
    : watched_(environment().notice > 0 || environment().limit > 0 || own_program) {
    if (!watched_) return;
    static std::once_flag once;
    std::call_once(once, start_watching);
    ++watch().begun;
    ++watch().running;
}

WatchedLaunch::~WatchedLaunch() {
    if (watched_) --watch().running;
}

void note_output() {
    ++watch().outputs;
}

void may_be_asked(const BlockRunner& runner) {
    const std::scoped_lock lock(watch().mutex);
    watch().os_threads.push_back({pthread_self(), &runner});
}

void may_not_be_asked(const BlockRunner& runner) {
    const std::scoped_lock lock(watch().mutex);
    std::erase_if(watch().os_threads, [&](const OsThread& other) { return other.runner == &runner; });
}

bool every_block_polls(const LaunchState& launch, std::chrono::steady_clock::rep duration) {
    const std::unique_lock lock(watch().mutex, std::try_to_lock);
    if (!lock.owns_lock()) return false;  // another OS thread holds the lock; try again next time
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return std::ranges::all_of(watch().os_threads, [&](const OsThread& each) {
        return each.runner->only_polls(launch, now, duration);
    });
}

unsigned blocks_that_have_polled(const LaunchState& launch, std::chrono::steady_clock::rep then) {
    const std::unique_lock lock(watch().mutex, std::try_to_lock);
    if (!lock.owns_lock()) return 0;
    return static_cast<unsigned>(std::ranges::count_if(watch().os_threads, [&](const OsThread& each) {
        return each.runner->has_polled_since(launch, then);
    }));
}

}  // namespace cuda_on_cpu
