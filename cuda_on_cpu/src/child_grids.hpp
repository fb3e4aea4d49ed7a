// Grids, copies and memsets that a kernel issues (dynamic parallelism, as of CUDA 12).
//
// They run when the blocks of the grid have ended, which is the latest time at which a GPU may
// start them. With CUDA_ON_CPU_CHILDREN=early each runs when it is launched, unless its stream
// makes it wait, and the thread that launches it goes on when it has ended. A kernel that reads the
// results of its child is wrong in the first case, and one that writes too late what its child
// reads in the second. CUDA_ON_CPU_STREAMS sets the order of the kernel's streams. The grid is
// complete when its children are. The work in cudaStreamTailLaunch runs last.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda_on_cpu/thread.h"
#include "driver_types.h"
#include "graph_run.hpp"
#include "stream.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {

// How deep grids that launch grids may be nested: the one that the host launches has depth 0. Tail
// launches have the depth of the grid that they follow.
inline constexpr unsigned kDeepestChild = 24;

// cudaLimitDevRuntimePendingLaunchCount: how many grids that kernels have launched may wait to
// begin.
inline constexpr std::size_t kPendingLaunches = 2048;
void set_pending_launch_limit(std::size_t limit);

// Is a kernel allowed to launch one more grid? If not, the thread gets the error.
cudaError_t check_child(cudaStream_t stream, const char* kernel_name);

// The device-side versions of the runtime's functions.
cudaError_t submit_by_kernel(cudaStream_t stream, const char* function, StreamOperation operation);
cudaError_t record_event_by_kernel(cudaEvent_t event, cudaStream_t stream);
cudaError_t wait_for_event_by_kernel(cudaStream_t stream, cudaEvent_t event);
// cudaDeviceSynchronize() in a kernel, as in CUDA 11: runs the work that the thread's block has
// issued. Reports once that CUDA has removed this function.
cudaError_t synchronize_by_kernel();
// The graph that the kernel of this OS thread belongs to; null: none.
std::shared_ptr<GraphRun> graph_run_of_kernel();
void set_last_error_by_kernel(cudaError_t error);
cudaError_t last_error_by_kernel(bool clear);

// The work that the threads of one grid have issued.
class ChildGrids {
  public:
    void add(std::uint64_t block, cudaStream_t stream, Work work);
    void record(std::uint64_t block, cudaEvent_t event, cudaStream_t stream);
    void wait(std::uint64_t block, cudaStream_t stream, cudaEvent_t event);

    // Runs the work that `block` has issued so far, each piece on its own OS thread, while this OS
    // thread waits.
    void run_those_of(std::uint64_t block);
    // Starts the children early, because a thread of the grid polls for a value that a child may
    // write.
    void start_now();
    // Runs all of them on this OS thread. Afterwards take_tails() returns the tail launches.
    void run_all();
    std::deque<Work> take_tails();

    // The last error of one thread of the grid.
    cudaError_t& last_error(std::uint64_t block, unsigned thread) { return last_errors_[{block, thread}]; }
    std::mutex& mutex() { return mutex_; }

  private:
    struct Child {
        std::uint64_t block = 0;
        Work work;
        std::shared_ptr<Child> previous;  // in its stream
        std::shared_ptr<Child> recorded;  // an event completes when this child does
        bool taken = false;
        bool done = false;
    };
    using ChildPointer = std::shared_ptr<Child>;
    static constexpr std::uint64_t kAllBlocks = ~std::uint64_t{0};

    ChildPointer append(std::uint64_t block, cudaStream_t stream, Work work);
    ChildPointer take(std::uint64_t block);  // the next child that can run; null: none
    void finish(const ChildPointer& child);

    std::mutex mutex_;
    std::vector<ChildPointer> open_;
    std::map<std::pair<std::uint64_t, cudaStream_t>, ChildPointer> last_in_stream_;
    std::map<cudaEvent_t, ChildPointer> recorded_;
    std::deque<Work> tails_;
    std::map<std::pair<std::uint64_t, unsigned>, cudaError_t> last_errors_;
    bool started_ = false;
    Team early_;  // last: its destructor waits for threads that use the other members
};

}  // namespace cuda_on_cpu
