// With CUDA_ON_CPU_NOTICE=10 a program that has printed nothing for 10 s reports once where its
// kernel is: "still running after 10 s, in vector_add.cuh:46, block 0, thread 0". This reveals an
// endless loop; a kernel that is only slow continues. Tests print when they begin and end, so many
// slow launches in one test are reported as well. By default, a user's own program reports once a
// launch that takes more than 10 s. With CUDA_ON_CPU_LIMIT=60 a launch that takes longer than 60 s
// is ended with cudaErrorLaunchTimeout.
#pragma once

#include <chrono>

namespace cuda_on_cpu {

class BlockRunner;
struct LaunchState;

// Exists for the duration of a launch.
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

// Registers and unregisters an OS thread that runs blocks with this runner, so that its present
// line can be reported.
void may_be_asked(const BlockRunner& runner);
void may_not_be_asked(const BlockRunner& runner);

// Has every running block of the launch only polled memory, or waited for other blocks, for that
// long?
bool every_block_polls(const LaunchState& launch, std::chrono::steady_clock::rep duration);
// How many of them have read that memory since `then`? May return 0 if another OS thread is
// counting.
unsigned blocks_that_have_polled(const LaunchState& launch, std::chrono::steady_clock::rep then);

}  // namespace cuda_on_cpu
