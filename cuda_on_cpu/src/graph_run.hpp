// One launch of an executable graph, for kernels that launch graphs (device graph launch).
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "driver_types.h"
#include "work_queue.hpp"

namespace cuda_on_cpu {

// What a kernel of a graph may launch: so many graphs to run beside its own, in all, and so many
// behind it that have not begun.
inline constexpr unsigned kMostBeside = 120;
inline constexpr std::size_t kMostBehind = 255;

struct GraphRun {
    explicit GraphRun(cudaGraphExec_t of) : executable(of) {}

    cudaGraphExec_t executable;
    std::mutex mutex;
    unsigned beside = 0;      // launched so far
    std::deque<Work> behind;  // cudaStreamGraphTailLaunch: when this run is complete
    GraphRun* first = this;   // of a run behind another one: the first of them, which starts them all
};

// The run that the work of this OS thread belongs to; null: none.
inline thread_local std::shared_ptr<GraphRun> graph_of_os_thread;

class GraphScope {
  public:
    explicit GraphScope(std::shared_ptr<GraphRun> run)
        : before_(std::exchange(graph_of_os_thread, std::move(run))) {}
    GraphScope(const GraphScope&) = delete;
    GraphScope& operator=(const GraphScope&) = delete;
    ~GraphScope() { graph_of_os_thread = std::move(before_); }

  private:
    std::shared_ptr<GraphRun> before_;
};

}  // namespace cuda_on_cpu
