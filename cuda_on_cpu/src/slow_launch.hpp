// With CUDA_ON_CPU_NOTICE=10 a program that has printed nothing for 10 s reports once where its
// kernel is: "still running after 10 s, in vector_add.cuh:46, block 0, thread 0". This shows a loop
// that never ends; a kernel that is only slow goes on. Tests print when they begin and end, so many
// slow launches in one test are reported, too. Where nothing is set, a program of the user's own
// reports once a launch that takes more than 10 s. With CUDA_ON_CPU_LIMIT=60 a launch that
// takes longer than that is ended, with cudaErrorLaunchTimeout.
#pragma once

#include <chrono>

namespace cuda_on_cpu {

class BlockRunner;
struct LaunchState;

// Lives as long as a launch runs.
class WatchedLaunch {
  public:
    WatchedLaunch();
    ~WatchedLaunch();
    WatchedLaunch(const WatchedLaunch&) = delete;
    WatchedLaunch& operator=(const WatchedLaunch&) = delete;

  private:
    bool watched_;
};

// The program prints something.
void note_output();

// This OS thread runs blocks with that runner, from here on, and until the end of its life not any
// more: it can be asked where it is.
void may_be_asked(const BlockRunner& runner);
void may_not_be_asked(const BlockRunner& runner);

// Has every block of the launch that runs done nothing but poll memory, or wait for other blocks,
// for that long?
bool every_block_polls(const LaunchState& launch, std::chrono::steady_clock::rep duration);
// How many of them have looked at that memory since then? None, perhaps, if another OS thread asks.
unsigned blocks_that_have_polled(const LaunchState& launch, std::chrono::steady_clock::rep then);

}  // namespace cuda_on_cpu
