#include "polling_watch.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "environment.hpp"
#include "kernel_line.hpp"
#include "launch_state.hpp"
#include "report_text.hpp"
#include "slow_launch.hpp"

namespace cuda_on_cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr PollingWatch::Time ticks(Clock::duration duration) {
    return duration.count();
}
constexpr PollingWatch::Time kFirstLook = ticks(std::chrono::milliseconds(2));
constexpr PollingWatch::Time kBetweenLooks = ticks(std::chrono::milliseconds(10));
constexpr PollingWatch::Time kSpins = ticks(std::chrono::microseconds(200));
constexpr auto kNap = std::chrono::microseconds(10);
constexpr auto kLongestNap = std::chrono::microseconds(2000);

}  // namespace

bool PollingWatch::poll_on(LaunchState& launch) {
    const Time now = Clock::now().time_since_epoch().count();
    looked_since_.store(last_poll_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    last_poll_.store(now, std::memory_order_relaxed);
    if (since_.load(std::memory_order_relaxed) == 0) {
        since_.store(now, std::memory_order_relaxed);
        polls_since_ = now;
        next_look_ = now + kFirstLook;
    }
    if (now >= next_look_ && !look_at_others(launch, now)) return false;
    give_way(launch, now);
    return true;
}

void PollingWatch::give_way(LaunchState& launch, Time now) {
    // If there are more running blocks than processors, polling blocks must not take time from the
    // block for which they wait.
    const auto crowd = static_cast<long>(launch.blocks_at_once() / environment().threads);
    if (crowd > 1 && now - polls_since_ >= kSpins) {
        std::this_thread::sleep_for(std::min(crowd * kNap, kLongestNap));
    } else {
        // Yielding the core costs a time slice on a busy machine, and usually the awaited thread is
        // in this block.
        constexpr unsigned kRoundsPerYield = 64;
        if (++rounds_ % kRoundsPerYield != 0) return;
        std::this_thread::yield();
    }
    if (const std::uint64_t begun = launch.next_block; begun != blocks_seen_) {
        blocks_seen_ = begun;  // another block has ended and may have written the value
        all_wait_since_ = now;
    }
    launch.let_other_blocks_begin(std::max(all_wait_since_, polls_since_), now);
}

// Checks periodically whether other blocks of the launch make progress, so that the value may still
// be written.
bool PollingWatch::look_at_others(LaunchState& launch, Time now) {
    next_look_ = now + kBetweenLooks;
    if (const std::uint64_t begun = launch.next_block; begun != blocks_begun_) {
        blocks_begun_ = begun;
        since_.store(now, std::memory_order_relaxed);
        return true;
    }
    if (!every_block_polls(launch, kFirstLook)) return true;
    launch.polls_in_vain();
    if (!every_block_polls(launch, ticks(environment().timeout))) return true;
    if (launch.polled_in_vain.exchange(true)) return !launch.failed;  // another block has reported it
    // The line of the thread that polled last; the other threads of its block poll or wait as well.
    const std::string line = calling_kernel_line();
    launch.fail(cudaErrorLaunchTimeout,
                "block " + triple(blockIdx) + " has polled memory for " +
                    std::to_string(environment().timeout.count()) +
                    " s for a value that never came, or is in a loop that never ends" +
                    (line.empty() ? "" : ", in " + line) + " (CUDA_ON_CPU_TIMEOUT)" +
                    launch.blocks_that_wait_to_begin());
    return false;
}

bool PollingWatch::has_polled_since(Time then) const {
    return since_.load(std::memory_order_relaxed) != 0 &&
           looked_since_.load(std::memory_order_relaxed) >= then;
}

bool PollingWatch::only_polls(Time now, Time duration) const {
    constexpr Time kRecently = ticks(std::chrono::seconds(1));
    const Time since = since_.load(std::memory_order_relaxed);
    return since != 0 && now - since >= duration &&
           now - last_poll_.load(std::memory_order_relaxed) < kRecently;
}

}  // namespace cuda_on_cpu
