// Work that has been issued to streams and is not done yet: what must come before it, and when it
// runs.
//
// CUDA_ON_CPU_STREAMS=issue: a task runs when it is issued, and the host waits for it, unless it
// waits for something that the host has yet to do: then the host goes on, and what comes after the
// task in its stream runs when the task has ended. CUDA_ON_CPU_STREAMS=late and random:SEED: a task
// runs when the host waits for it, or for something that comes after it. With random:SEED it is a
// task of the stream with the highest priority. Priorities are drawn, and now and then drawn anew:
// so one stream runs far ahead of another one, which a uniform choice hardly ever does (Burckhardt
// et al. 2010, "A randomized scheduler with probabilistic guarantees of finding bugs").
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "driver_types.h"

namespace cuda_on_cpu {

using Work = std::function<cudaError_t()>;

struct Task;
using TaskPointer = std::shared_ptr<Task>;

struct Task {
    Work work;
    bool may_wait =
        false;  // for the host or for another stream, so it must not run on the host's own OS thread
    bool host_function = false;       // it may wait for anything
    int device = 0;                   // of its stream
    std::uint64_t number = 0;         // in the order of issue
    std::uint64_t priority = 0;       // its stream's when it was issued; random:SEED alone has any
    std::vector<TaskPointer> after;   // what has to be done before
    std::vector<TaskPointer> behind;  // the tasks that have this one in their `after`
    std::size_t missing = 0;          // those of `after` that are not done
    // In an inspection: the numbers of those that were open when it was issued, and that it does
    // not come after.
    std::vector<std::uint64_t> beside;
    enum class State { pending, running, done } state = State::pending;
    bool host_goes_on = false;  // although it is not done
};

// The last task of a stream. Null: the stream has never had one that was not done at once.
struct StreamTail {
    TaskPointer task;
    bool legacy = false;         // tasks wait for those of all blocking streams
    bool blocking = false;       // tasks wait for the legacy stream
    std::uint64_t priority = 0;  // 0: none is drawn yet
    int device = 0;
};

// Is there anything that keeps work from running on the spot? No: work runs when it is issued, and
// nothing is open.
bool work_is_deferred();

// A program with streams or with memory that host and device share: there a kernel may wait for the
// host or for other kernels.
void expect_concurrency();
bool concurrency_expected();

// Appends `task` to a stream; it comes after `others`, too.
void issue_task(const TaskPointer& task, StreamTail& tail, const std::vector<TaskPointer>& others = {});
// Issues tasks that come after each other as their `after` says, the first ones after what is in
// the stream. The last task comes after all others; the stream goes on behind it.
void issue_graph(const std::vector<TaskPointer>& tasks, StreamTail& tail, const TaskPointer& also_after);

// What a stream has to do before an event that is recorded now, or a host that waits now; null:
// nothing.
std::vector<TaskPointer> open_tasks_of(const StreamTail& tail);
std::vector<TaskPointer> all_open_tasks();
std::vector<TaskPointer> open_tasks_of_device(int device);

// Waits until all of `tasks` are done, which may mean to run them, and others.
void wait_for(std::vector<TaskPointer> tasks);
// Are they done? If not, the next one runs, so that a host that asks again and again sees an end.
bool poll_tasks(const std::vector<TaskPointer>& tasks);
bool is_done(const TaskPointer& task);

// The task that this OS thread runs; null: none.
Task* running_task();
// Does some other OS thread run a task, or may it change the device's memory by itself at any time?
// Each host thread that allocates memory is noted.
bool other_work_runs();
void note_host_thread();
// How many OS threads run tasks now.
unsigned running_task_count();
// `task` waits for something that does not come: the host, if it waits for the task alone, goes on.
void let_host_go_on(Task* task);
// The host polls memory: what is open may run.
void host_polls();

// Is this OS thread inside a host function of a stream? There CUDA allows no calls.
bool in_host_function();
Work as_host_function(Work work);

// Which of `count` things that may run in any order is next, in the order of issue: with
// CUDA_ON_CPU_STREAMS=issue the first, with `late` the last, else one drawn from the seed.
std::size_t draw_index(std::size_t count);

}  // namespace cuda_on_cpu
