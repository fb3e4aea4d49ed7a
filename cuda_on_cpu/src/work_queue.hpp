// Work that has been issued to streams and is not done yet: its dependencies, and when it runs.
//
// CUDA_ON_CPU_STREAMS=issue: a task runs when it is issued, and the host waits for it. If the task
// itself waits for the host, the host continues, and the later work of the stream runs when the
// task has ended. CUDA_ON_CPU_STREAMS=late and random:SEED: a task runs when the host waits for it,
// or for something that comes after it. With random:SEED the stream with the highest priority runs
// its next task. Priorities are random and are redrawn now and then, so that one stream may run far
// ahead of another, which hardly ever happens with a uniform choice (Burckhardt et al. 2010, "A
// randomized scheduler with probabilistic guarantees of finding bugs").
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "driver_types.h"
#include "memory.hpp"

namespace cuda_on_cpu {

using Work = std::function<cudaError_t()>;

struct Task;
using TaskPointer = std::shared_ptr<Task>;

struct Task {
    Work work;
    // For the host or for another stream, so it must not run on the host's own OS thread.
    bool may_wait = false;
    bool host_function = false;       // it may wait for anything
    int device = 0;                   // the device of its stream
    std::uint64_t number = 0;         // in the order of issue
    std::uint64_t priority = 0;       // of its stream when it was issued; only for random:SEED
    std::vector<TaskPointer> after;   // tasks that must be done before
    std::vector<TaskPointer> behind;  // the tasks that have this one in their `after`
    std::size_t missing = 0;          // number of tasks in `after` that are not done
    // In an inspection: the numbers of the open tasks at the time of issue that this task does not
    // depend on.
    std::vector<std::uint64_t> beside;
    enum class State { pending, running, done } state = State::pending;
    bool host_goes_on = false;  // the host continues although the task is not done
};

// The last task of a stream. Null: every task of the stream so far was done at once.
struct StreamTail {
    TaskPointer task;
    bool legacy = false;         // its tasks wait for all blocking streams
    bool blocking = false;       // its tasks wait for the legacy stream
    std::uint64_t priority = 0;  // 0: not drawn yet
    int device = 0;
    // The kernel that was issued last, if nothing was issued to the stream since; 0: none. Only
    // while host_waits has this value.
    std::uint64_t last_kernel = 0;
    std::uint64_t host_waits = 0;
};
// How often the host has waited for something.
extern std::atomic<std::uint64_t> host_waits;

// True if new work may have to wait: streams run late (CUDA_ON_CPU_STREAMS), or earlier work is not
// done.
bool work_is_deferred();

// Permission to do work on this OS thread without a task, which no stream can see: nothing is
// deferred, and this is the only host thread that has ever used the device. Another one's first
// call waits until such work is done.
class WorkAtOnce {
  public:
    WorkAtOnce();
    ~WorkAtOnce();
    WorkAtOnce(const WorkAtOnce&) = delete;
    WorkAtOnce& operator=(const WorkAtOnce&) = delete;

    explicit operator bool() const { return permitted_; }

  private:
    bool permitted_ = false;
    std::optional<DeviceWork> work_;
};

// For programs with streams or with memory that host and device share: a kernel may wait there for
// the host or for other kernels.
void expect_concurrency();
bool concurrency_expected();

// Appends `task` to a stream; it also comes after `others`.
void issue_task(const TaskPointer& task, StreamTail& tail, const std::vector<TaskPointer>& others = {});
// Issues tasks in the order that their `after` defines; the first ones come after the tasks in the
// stream. The last task comes after all others and becomes the end of the stream.
void issue_graph(const std::vector<TaskPointer>& tasks, StreamTail& tail, const TaskPointer& also_after);

// The open tasks of a stream, for which a host that waits for it now must wait. Empty: none.
std::vector<TaskPointer> open_tasks_of(const StreamTail& tail);
// Would a task issued to the stream now wait for another one? For a blocking stream that may be one
// of the legacy stream.
bool waits_in(const StreamTail& tail);
std::vector<TaskPointer> all_open_tasks();
std::vector<TaskPointer> open_tasks_of_device(int device);

// Waits until all of `tasks` are done, and runs them and others if necessary.
void wait_for(std::vector<TaskPointer> tasks);
// Are the tasks done? If not, runs the next one, so that a host that polls in a loop makes
// progress.
bool poll_tasks(const std::vector<TaskPointer>& tasks);
bool is_done(const TaskPointer& task);

// The task that this OS thread runs; null: none.
Task* running_task();
// Does another OS thread run a task, or could one change the device's memory at any time?
// note_host_thread() records each host thread that allocates memory or issues work; that of a task
// is none.
bool other_work_runs();
void note_host_thread();
// The number of OS threads that run tasks now.
unsigned running_task_count();
// `task` polls in vain for a value: if the host waits for this task alone, it continues.
void let_host_go_on(Task* task);
// The host polls memory, so open tasks may run.
void host_polls();

// Is this OS thread inside a host function of a stream? CUDA allows no calls there.
bool in_host_function();
Work as_host_function(Work work);

// Selects one of `count` candidates in the order of issue: with CUDA_ON_CPU_STREAMS=issue the
// first, with `late` the last, otherwise one drawn from the seed.
std::size_t draw_index(std::size_t count);

}  // namespace cuda_on_cpu
