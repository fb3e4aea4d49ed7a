#include "order_check.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "block.hpp"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/spin_hint.h"
#include "environment.hpp"
#include "exit_report.hpp"
#include "fibre.hpp"
#include "launch_state.hpp"

namespace cuda_on_cpu {
namespace {

constexpr unsigned kLaunchesOfAKernel = 2;
constexpr std::size_t kMostMemory = std::size_t{16} << 20;
constexpr std::uint64_t kMostThreads = 1 << 18;
constexpr long long kMillisecond = 1'000'000;
constexpr long long kLongLaunch = 50 * kMillisecond;
constexpr long long kLongestWait = 500 * kMillisecond;
constexpr long long kMostTime = 1000 * kMillisecond;  // of the whole program, spent here

std::atomic<long long> time_spent{0};

long long now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

#ifndef CUDA_ON_CPU_ASAN
// A debugger would stop at each copy.
bool is_debugged() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
    }
    return false;
}
#endif

uint3 index_in(dim3 extent, std::uint64_t i) {
    return uint3{static_cast<unsigned>(i % extent.x), static_cast<unsigned>(i / extent.x % extent.y),
                 static_cast<unsigned>(i / (std::uint64_t{extent.x} * extent.y))};
}

char* shared_memory(std::size_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void copy_all(const std::vector<Allocation>& allocations, char* to) {
    for (const Allocation& each : allocations) {
        std::memcpy(to, each.begin, each.size);
        to += each.size;
    }
}

}  // namespace

OrderCheck::OrderCheck(LaunchState& launch) : launch_(launch) {
    if (!applies()) return;
    started_ = now();
    allocations_ = live_allocations();
    for (const Allocation& each : allocations_) {
        if (each.mapping == nullptr || each.file >= 0) return;  // memory that processes may share
        bytes_ += each.size;
    }
    if (bytes_ > 0 && bytes_ <= kMostMemory) start();
    time_spent += now() - started_;
}

bool OrderCheck::applies() const {
#ifdef CUDA_ON_CPU_ASAN
    return false;
#else
    static const bool wanted = !is_debugged();
    const LaunchConfiguration& c = launch_.configuration;
    return own_program && environment().hints && wanted && launch_.observer == nullptr &&
           memory_observer == nullptr && !c.cooperative && volume(c.cluster) <= 1 &&
           volume(c.grid) * volume(c.block) > 1 && volume(c.grid) * volume(c.block) <= kMostThreads &&
           launch_.kernel->times_repeated < kLaunchesOfAKernel && time_spent < kMostTime &&
           !other_work_runs();
#endif
}

void OrderCheck::start() {
    ++launch_.kernel->times_repeated;
    before_ = shared_memory(bytes_);
    after_ = shared_memory(bytes_);
    if (before_ == nullptr || after_ == nullptr) return;
    block_runner();  // is made here, rather than in the copy, which must not wait for a lock
    copy_ = fork();
    if (copy_ == 0) run_in_other_order();
    copy_ = std::max(copy_, 0);
}

// In the copy. It has one OS thread, and ends without a trace.
void OrderCheck::run_in_other_order() {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    launch_.repeated = true;
    copy_all(allocations_, before_);
    BlockRunner& runner = block_runner();
    runner.reverse_order();
    order_may_show = false;
    for (std::uint64_t block = volume(launch_.configuration.grid); block-- > 0 && !launch_.failed;)
        runner.run(launch_, index_in(launch_.configuration.grid, block), nullptr);
    if (launch_.failed || order_may_show) _exit(1);
    copy_all(allocations_, after_);
    _exit(0);
}

bool OrderCheck::copy_has_finished() {
    const long long begin = now();
    const bool is_small = begin - started_ < kLongLaunch && !launch_.failed;
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(copy_, &status, WNOHANG);
        if (ended == copy_) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0) return false;
        if (!is_small || now() - begin > kLongestWait) break;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    kill(copy_, SIGKILL);
    waitpid(copy_, &status, 0);
    return false;
}

// Only where the copy has changed something: the rest may be changed by other streams, or by the
// host, meanwhile.
bool OrderCheck::differs() const {
    std::size_t offset = 0;
    for (const Allocation& each : allocations_) {
        const char* const before = before_ + offset;
        const char* const after = after_ + offset;
        offset += each.size;
        if (std::memcmp(each.begin, after, each.size) == 0) continue;
        for (std::size_t i = 0; i < each.size; ++i) {
            if (after[i] != before[i] && each.begin[i] != after[i]) return true;
        }
    }
    return false;
}

OrderCheck::~OrderCheck() {
    if (copy_ > 0) {
        const long long begin = now();
        if (copy_has_finished() && differs()) note_order_shows(launch_.name);
        time_spent += now() - begin;
    }
    if (before_ != nullptr) munmap(before_, bytes_);
    if (after_ != nullptr) munmap(after_, bytes_);
}

}  // namespace cuda_on_cpu
