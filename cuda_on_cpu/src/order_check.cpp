#include "order_check.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <string>

#include "block.hpp"
#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/spin_hint.h"
#include "device_variables.hpp"
#include "environment.hpp"
#include "exit_report.hpp"
#include "fibre.hpp"
#include "launch_state.hpp"
#include "order_notes.hpp"
#include "pages.hpp"
#include "shared_arena.hpp"

namespace cuda_on_cpu {
namespace {

constexpr unsigned kLaunchesOfAKernel = 2;
constexpr std::size_t kMostOfVariable = std::size_t{1} << 16;
constexpr std::size_t kMostMemory = std::size_t{16} << 20;
constexpr std::uint64_t kMostThreads = 1 << 18;
constexpr std::uint64_t kThreadsOfFewBlocks = 1 << 14;
constexpr unsigned kBarriersOfFewBlocks = 64;
constexpr std::size_t kMostRestored = std::size_t{32} << 20;  // bytes, for warps that run apart
constexpr long long kMillisecond = 1'000'000;
constexpr long long kLongLaunch = 150 * kMillisecond;  // a busy machine makes short ones longer
constexpr long long kLongestWait = 500 * kMillisecond;
constexpr long long kMostTime = 1000 * kMillisecond;  // limit for the time spent here in the whole program

constexpr long kSecond = 1'000'000'000;  // in ns
constexpr int kNoAnswer = -1;

std::atomic<long long> time_spent{0};

long long now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

char* shared_memory(std::size_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

// Runs each warp on the memory as it was before the launch, and puts together what they have
// changed. In the place of the kernel, called for each thread.
struct WarpsApart {
    void (*kernel)(const void*) = nullptr;
    const std::vector<Piece>* pieces = nullptr;
    std::vector<char> before;
    std::vector<char> together;
    std::uint64_t block = 0;
    unsigned warp = 0;
    unsigned running = 0;  // threads that have begun and not ended

    // The warp has ended.
    void put_back() {
        for (const Piece& each : *pieces) {
            const char* const from = before.data() + each.offset;
            char* const to = together.data() + each.offset;
            if (std::memcmp(each.begin, from, each.size) == 0) continue;
            for (std::size_t i = 0; i < each.size; ++i) {
                if (each.begin[i] != from[i]) to[i] = each.begin[i];
            }
            std::memcpy(each.begin, from, each.size);
        }
    }
};
WarpsApart warps_apart;

// Which pages this copy of the process has written since it began: those that it no longer shares
// with the process that it is a copy of. Where the system does not tell, all.
class WrittenPages {
  public:
    WrittenPages() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
    ~WrittenPages() {
        if (file_ >= 0) close(file_);
    }
    WrittenPages(const WrittenPages&) = delete;
    WrittenPages& operator=(const WrittenPages&) = delete;

    bool contain(const char* byte) {
        const std::size_t page = reinterpret_cast<std::uintptr_t>(byte) / page_size();
        if (page < first_ || page >= first_ + count_) read_from(page);
        if (page >= first_ + count_) return true;
        const std::uint64_t entry = entries_[page - first_];
        constexpr std::uint64_t kIsThere = std::uint64_t{1} << 63;
        constexpr std::uint64_t kIsSwapped = std::uint64_t{1} << 62;
        constexpr std::uint64_t kIsOurs = std::uint64_t{1} << 56;
        return (entry & kIsSwapped) != 0 || ((entry & kIsThere) != 0 && (entry & kIsOurs) != 0);
    }

  private:
    void read_from(std::size_t page) {
        const ssize_t bytes = file_ < 0 ? 0
                                        : pread(file_, entries_.data(), sizeof entries_,
                                                static_cast<off_t>(page * sizeof entries_[0]));
        first_ = page;
        count_ = bytes <= 0 ? 0 : static_cast<std::size_t>(bytes) / sizeof entries_[0];
    }

    int file_;
    std::array<std::uint64_t, 512> entries_{};
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

// Is the difference in byte i only that of two NaNs of opposite signs? Which operand of a sum gives
// a NaN its sign depends on the compiler's choices. The upper word of a double NaN is a NaN as a
// float, too.
bool is_sign_of_nan(const char* a, const char* b, std::size_t i, std::size_t size) {
    const std::size_t word = i / sizeof(float) * sizeof(float);
    if (word + sizeof(float) > size) return false;
    std::uint32_t x, y;
    std::memcpy(&x, a + word, sizeof x);
    std::memcpy(&y, b + word, sizeof y);
    return (x & 0x7FFFFFFF) > 0x7F800000 && (x ^ y) == 0x80000000;
}

bool results_differ(const char* a, const char* b, std::size_t size) {
    if (std::memcmp(a, b, size) == 0) return false;
    for (std::size_t i = 0; i < size; ++i)
        if (a[i] != b[i] && !is_sign_of_nan(a, b, i, size)) return true;
    return false;
}

// Compares two results of a kernel, apart from rounding if the kernel sums floating-point numbers
// atomically. The type of the results is unknown, so a difference only counts if it is one for each
// possible type.
class Rounding {
  public:
    Rounding(const SeenAtomics& seen, const char* kernel)
        : exact_(seen.float_sums == 0),
          has_doubles_(std::strstr(kernel, "double") != nullptr),
          error_(4 * static_cast<double>(seen.float_sums) * 0x1p-24 * seen.largest_sum) {}

    bool differ(const char* a, const char* b, std::size_t size) const {
        return exact_ ? results_differ(a, b, size) : more_than_rounding(a, b, size);
    }

  private:
    bool more_than_rounding(const char* a, const char* b, std::size_t size) const {
        const auto words_differ = [&](std::size_t at) { return far_apart<float>(a + at, b + at); };
        std::size_t at = 0;
        for (; has_doubles_ && at + sizeof(double) <= size; at += sizeof(double)) {
            if (far_apart<double>(a + at, b + at) && (words_differ(at) || words_differ(at + sizeof(float))))
                return true;
        }
        for (; at + sizeof(float) <= size; at += sizeof(float)) {
            if (words_differ(at)) return true;
        }
        return false;
    }
    template <class T>
    bool far_apart(const char* a, const char* b) const {
        constexpr double kMostRounding = 0.01;  // of a result; sums may cancel
        T x, y;
        std::memcpy(&x, a, sizeof x);
        std::memcpy(&y, b, sizeof y);
        if (std::isnan(x) || std::isnan(y)) return std::isnan(x) != std::isnan(y);
        if (x == y) return false;
        return std::fabs(x - y) > kMostRounding * std::max(std::fabs(x), std::fabs(y)) &&
               std::fabs(x - y) > error_;
    }

    bool exact_;
    bool has_doubles_;
    double error_;  // that a sum may have
};

}  // namespace

OrderCheck::OrderCheck(LaunchState& launch) : launch_(launch) {
    if (!applies()) return;
    started_ = now();
    const LaunchConfiguration& c = launch_.configuration;
    has_many_threads_ = volume(c.grid) * volume(c.block) > kMostThreads;
    allocations_ = live_allocations();
    for (const Allocation& each : allocations_) {
        if (each.mapping == nullptr || each.file >= 0) return;  // memory that processes may share
        bytes_ += each.size;
    }
    add_variables();
    if (bytes_ > 0 && bytes_ <= kMostMemory) start();
    time_spent += now() - started_;
}

// Large ones are probably tables, and no results.
void OrderCheck::add_variables() {
    for (const auto& [begin, size] : known_variables()) {
        if (size > kMostOfVariable) continue;
        Allocation variable{};
        variable.begin = begin;
        variable.size = size;
        allocations_.push_back(variable);
        bytes_ += size;
    }
}

bool OrderCheck::applies() const {
#ifdef CUDA_ON_CPU_ASAN
    return false;
#else
    static const bool wanted = !is_debugged();  // a debugger would stop at each copy
    const LaunchConfiguration& c = launch_.configuration;
    return own_program && environment().hints && wanted && launch_.observer == nullptr &&
           memory_observer == nullptr && !c.cooperative && volume(c.cluster) <= 1 &&
           volume(c.grid) * volume(c.block) > 1 && volume(c.block) <= kThreadsOfFewBlocks &&
           launch_.kernel->times_repeated < kLaunchesOfAKernel && time_spent < kMostTime &&
           !other_work_runs();
#endif
}

void OrderCheck::cut_into_pieces() {
    std::size_t offset = 0;
    for (const Allocation& each : allocations_) {
        char* const end = each.begin + each.size;
        for (char* begin = each.begin; begin < end;) {
            const std::size_t in_page = reinterpret_cast<std::uintptr_t>(begin) % page_size();
            const auto left = static_cast<std::size_t>(end - begin);
            pieces_.push_back({begin, std::min(page_size() - in_page, left), offset});
            begin += pieces_.back().size;
            offset += pieces_.back().size;
        }
    }
}

char* OrderCheck::new_results() const {
    return shared_memory(bytes_ + pieces_.size());
}

void OrderCheck::store_changes(char* results) const {
    WrittenPages written;
    char* changed = results + bytes_;
    for (const Piece& each : pieces_) {
        *changed = static_cast<char>(written.contain(each.begin));
        if (*changed++ != 0) std::memcpy(results + each.offset, each.begin, each.size);
    }
}

template <class Function>
bool OrderCheck::any_pair(const char* a, const char* b, const Function& function) const {
    const char* a_changed = a + bytes_;
    const char* b_changed = b + bytes_;
    for (const Piece& each : pieces_) {
        const bool in_a = *a_changed++ != 0;
        const bool in_b = *b_changed++ != 0;
        if ((in_a || in_b) &&
            function(in_a ? a + each.offset : each.begin, in_b ? b + each.offset : each.begin, each.size))
            return true;
    }
    return false;
}

bool OrderCheck::are_same(const char* a, const char* b) const {
    return !any_pair(a, b, results_differ);
}

void OrderCheck::start() {
    ++launch_.kernel->times_repeated;
    cut_into_pieces();
    before_ = shared_memory(bytes_);
    after_ = new_results();
    talk_ = reinterpret_cast<Talk*>(shared_memory(sizeof(Talk)));
    if (before_ == nullptr || after_ == nullptr || talk_ == nullptr) return;
    new (talk_) Talk;
    sem_init(&talk_->asked_about_blocks, 1, 0);
    sem_init(&talk_->answered, 1, 0);
    block_runner();  // created here and not in the copy, which must not wait for a lock
    copy_ = fork();
    if (copy_ == 0) find_out();
    copy_ = std::max(copy_, 0);
}

void OrderCheck::run_again(Order order, char* results) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    launch_.repeated = true;
    atomics_are_noted = true;
    order_may_show = false;
    *seen_atomics = SeenAtomics{};
    sums_are_late = order.sums_late;
    BlockRunner& runner = block_runner();
    if (order.threads_reversed) runner.reverse_order();
    static std::function<void()> end_here;
    static unsigned barriers_left;
    if (order.most_blocks != ~std::uint64_t{0}) {
        barriers_left = kBarriersOfFewBlocks;
        end_here = [this, results] {
            talk_->ended_early = true;
            store_changes(results);
            answer_run();
        };
        at_block_barrier = [] {
            if (--barriers_left == 0) end_here();
        };
    }
    if (order.warps_apart) {
        warps_apart.kernel = launch_.run;
        warps_apart.pieces = &pieces_;
        for (const Piece& each : pieces_)
            warps_apart.before.insert(warps_apart.before.end(), each.begin, each.begin + each.size);
        warps_apart.together = warps_apart.before;
        launch_.run = run_thread_of_warp;
    }
    const std::uint64_t blocks = std::min(volume(launch_.configuration.grid), order.most_blocks);
    for (std::uint64_t i = 0; i < blocks && !launch_.failed; ++i)
        runner.run(launch_, index_in(launch_.configuration.grid, order.blocks_reversed ? blocks - 1 - i : i),
                   nullptr);
    for (const auto& add : late_sums)
        add();
    if (order.warps_apart) {
        if (warps_apart.running > 0) give_up();
        warps_apart.put_back();
        char* changed = results + bytes_;
        for (const Piece& each : pieces_) {
            const char* const result = warps_apart.together.data() + each.offset;
            *changed = static_cast<char>(std::memcmp(result, each.begin, each.size) != 0);
            if (*changed++ != 0) std::memcpy(results + each.offset, result, each.size);
        }
    } else {
        store_changes(results);
    }
    answer_run();
}

void OrderCheck::answer_run() const {
    seen_atomics->shared_memory =
        launch_.kernel->static_shared > 0 || launch_.configuration.dynamic_shared > 0;
    seen_atomics->failed = launch_.failed;
    _exit(static_cast<int>(order_may_show          ? Answer::unknown
                           : seen_atomics->any     ? Answer::atomics
                           : launch_.failed.load() ? Answer::unknown
                                                   : Answer::same_unless_it_differs));
}

void OrderCheck::give_up() {
    _exit(static_cast<int>(Answer::unknown));
}

void OrderCheck::run_thread_of_warp(const void* closure) {
    WarpsApart& all = warps_apart;
    if (all.block != current_block || all.warp != current_warp) {
        if (all.running > 0) give_up();  // warps wait for each other
        if (all.block != 0) all.put_back();
        all.block = current_block;
        all.warp = current_warp;
    }
    ++all.running;
    all.kernel(closure);
    --all.running;
}

OrderCheck::Answer OrderCheck::run_copy(Order order, char* results) {
    talk_->ended_early = false;
    const pid_t copy = results == nullptr ? -1 : fork();
    if (copy == 0) run_again(order, results);
    int status = 0;
    if (copy < 0 || waitpid(copy, &status, 0) != copy || !WIFEXITED(status)) return Answer::unknown;
    return static_cast<Answer>(WEXITSTATUS(status));
}

// Runs in a copy that makes further copies. Neither it nor they print anything.
void OrderCheck::prepare_copy() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    seen_atomics = reinterpret_cast<SeenAtomics*>(shared_memory(sizeof(SeenAtomics)));
}

// Runs in the first copy, whose memory stays as it was before the launch.
void OrderCheck::find_out() {
    prepare_copy();
    const Answer answer = seen_atomics == nullptr ? Answer::unknown : compare_orders();
    const char* changed = after_ + bytes_;
    for (const Piece& each : pieces_) {
        if (*changed++ != 0) std::memcpy(before_ + each.offset, each.begin, each.size);
    }
    give_answer(answer);
    while (sem_wait(&talk_->asked_about_blocks) != 0) {
    }
    give_answer(depends_on_blocks_alone() ? Answer::depends_on_blocks : Answer::unknown);
    _exit(0);
}

void OrderCheck::give_answer(Answer answer) {
    talk_->answer = static_cast<int>(answer);
    sem_post(&talk_->answered);
}

OrderCheck::Answer OrderCheck::compare_orders() {
    Answer answer = Answer::unknown;
    const std::uint64_t blocks = few_blocks();
    const Order reversed{.blocks_reversed = true, .threads_reversed = true};
    bool is_known = false;
    if (blocks >= volume(launch_.configuration.grid)) {
        Order few = reversed;
        few.most_blocks = blocks;
        answer = run_copy(few, after_);
        is_known = !talk_->ended_early;
    }
    if (!is_known) {
        answer = compare_orders_of_few_blocks();
        if (answer == Answer::depends || has_many_threads_) return answer;
        answer = run_copy(reversed, after_);
    }
    if (answer == Answer::atomics) answer = compare_orders_of_threads();
    if (answer == Answer::same_unless_it_differs && differs_with_warps_apart())
        answer = Answer::differs_apart;
    return answer;
}

OrderCheck::Answer OrderCheck::compare_orders_of_threads() {
    char* const usual = new_results();
    char* const other = new_results();
    char* const third = new_results();
    const auto runs_to_its_end = [&](Order order, char* results) {
        return run_copy(order, results) == Answer::atomics && !seen_atomics->in_order_of_threads &&
               !seen_atomics->failed;
    };
    if (!runs_to_its_end({}, usual) || !seen_atomics->shared_memory) return Answer::unknown;
    const bool sums_by_threads = seen_atomics->sums_by_threads;
    if (!runs_to_its_end({.threads_reversed = true}, other)) return Answer::unknown;
    const Rounding rounding(*seen_atomics, launch_.kernel->pretty_name);
    const auto differ = [&](const char* a, const char* b) {
        return any_pair(a, b, [&](const char* x, const char* y, std::size_t size) {
            return rounding.differ(x, y, size);
        });
    };
    if (!differ(usual, other)) return Answer::unknown;
    if (sums_by_threads && (!runs_to_its_end({.sums_late = true}, third) || differ(usual, third)))
        return Answer::by_right;
    // With threads in ascending order values can travel along a chain of adjacent threads, and into
    // the next block. A block that waits for an earlier one fails in this run; such a kernel orders
    // its blocks itself.
    const bool descends = environment().descending;
    if (run_copy({.blocks_reversed = true, .threads_reversed = descends}, third) == Answer::unknown)
        return Answer::unknown;
    if (!seen_atomics->failed && differ(descends ? other : usual, third)) return Answer::by_right;
    return Answer::depends;
}

std::uint64_t OrderCheck::few_blocks() const {
    return std::max<std::uint64_t>(kThreadsOfFewBlocks / volume(launch_.configuration.block), 1);
}

OrderCheck::Answer OrderCheck::compare_orders_of_few_blocks() {
    char* const usual = new_results();
    const auto same = Answer::same_unless_it_differs;
    const std::uint64_t blocks = few_blocks();
    if (run_copy({.most_blocks = blocks}, usual) != same ||
        run_copy({.threads_reversed = true, .most_blocks = blocks}, after_) != same)
        return Answer::unknown;
    return are_same(usual, after_) ? Answer::unknown : Answer::depends;
}

bool OrderCheck::differs_with_warps_apart() {
    const LaunchConfiguration& c = launch_.configuration;
    const std::uint64_t warps = volume(c.grid) * ((volume(c.block) + kWarpLanes - 1) / kWarpLanes);
    if (warps < 2 || warps * bytes_ > kMostRestored) return false;
    char* const apart = new_results();
    return run_copy({.warps_apart = true}, apart) == Answer::same_unless_it_differs &&
           !are_same(apart, after_);
}

// Runs in the first copy, once the results are known to depend on the order. True if they stay the
// same with the threads of each block in the opposite order.
bool OrderCheck::depends_on_blocks_alone() {
    char* const usual = new_results();
    return run_copy({}, usual) == Answer::same_unless_it_differs &&
           run_copy({.threads_reversed = true}, after_) == Answer::same_unless_it_differs &&
           are_same(usual, after_);
}

bool OrderCheck::copy_finds_blocks() {
    started_ = now();
    talk_->answer = kNoAnswer;
    sem_post(&talk_->asked_about_blocks);
    return answer_of_copy() == Answer::depends_on_blocks;
}

OrderCheck::Answer OrderCheck::answer_of_copy() {
    const long long begin = now();
    // One block takes the copy about as long as the launch.
    const bool is_small = begin - started_ < kLongLaunch || volume(launch_.configuration.grid) == 1;
    const long long longest_wait =
        begin - started_ < kLongLaunch ? kLongestWait : std::min(kLongestWait, (begin - started_) / 2);
    for (;;) {
        if (const int answer = talk_->answer; answer != kNoAnswer) return static_cast<Answer>(answer);
        if (waitpid(copy_, nullptr, WNOHANG) != 0) {  // it has failed
            copy_ = 0;
            return Answer::unknown;
        }
        if (!is_small || launch_.failed || now() - begin > longest_wait) return Answer::unknown;
        timespec until{};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += kMillisecond;
        if (until.tv_nsec >= kSecond) {
            until.tv_nsec -= kSecond;
            ++until.tv_sec;
        }
        sem_timedwait(&talk_->answered, &until);
    }
}

// Compares only the bytes that the copy has changed, because other streams or the host may change
// the rest in the meantime.
bool OrderCheck::differs() const {
    const char* changed = after_ + bytes_;
    for (const Piece& each : pieces_) {
        const char* const before = before_ + each.offset;
        const char* const after = after_ + each.offset;
        if (*changed++ == 0 || std::memcmp(each.begin, after, each.size) == 0) continue;
        for (std::size_t i = 0; i < each.size; ++i) {
            if (after[i] != before[i] && each.begin[i] != after[i] &&
                !is_sign_of_nan(each.begin, after, i, each.size))
                return true;
        }
    }
    return false;
}

OrderCheck::~OrderCheck() {
    if (copy_ > 0) {
        const long long begin = now();
        const Answer answer = answer_of_copy();
        if (answer == Answer::depends) note_order_shows(launch_.name, OrderOf::threads);
        const bool ran = answer == Answer::same_unless_it_differs || answer == Answer::differs_apart;
        if (ran && differs())
            note_order_shows(launch_.name, copy_finds_blocks() ? OrderOf::blocks : OrderOf::threads);
        else if (answer == Answer::differs_apart)
            note_order_shows(launch_.name, OrderOf::threads);
        if (answer == Answer::by_right) launch_.kernel->times_repeated = kLaunchesOfAKernel;
        if (copy_ > 0) {
            kill(copy_, SIGKILL);
            waitpid(copy_, nullptr, 0);
        }
        time_spent += now() - begin;
    }
    if (before_ != nullptr) munmap(before_, bytes_);
    if (after_ != nullptr) munmap(after_, bytes_ + pieces_.size());
    if (talk_ != nullptr) munmap(talk_, sizeof(Talk));
}

}  // namespace cuda_on_cpu
