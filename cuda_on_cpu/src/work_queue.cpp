#include "work_queue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>

#include "current_device.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "managed_watch.hpp"
#include "observer.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {

std::atomic<std::uint64_t> host_waits{0};
namespace {

constinit thread_local Task* task_of_os_thread = nullptr;
constinit thread_local bool host_function = false;
// How long the host waits for a host function before it continues.
constexpr auto kPatience = std::chrono::milliseconds(20);

// Sorted by number, which is the order of issue.
using TasksByNumber = std::map<std::uint64_t, TaskPointer>;
using Numbers = std::unordered_set<std::uint64_t>;

// Tasks that a host has polled, and the numbers of all tasks that must be done first. Kept because
// hosts poll the same tasks again, often those of a few streams in turn.
struct Asked {
    std::vector<TaskPointer> tasks;
    Numbers needed;
};
constexpr std::size_t kMostAsked = 16;

struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    TasksByNumber open;
    TasksByNumber ready;  // the open tasks that wait for no other task
    std::atomic<std::size_t> open_count{0};
    std::uint64_t issued = 0;
    std::atomic<std::uint64_t> changes{0};                 // tasks issued or done
    std::atomic<unsigned> waiting{0};                      // number of waiting hosts
    std::array<TaskPointer, kMostDevices> last_of_legacy;  // of each device
    // For each device: the last tasks of its legacy stream and of the streams that synchronise with
    // it, except those that precede another of these tasks.
    std::array<TasksByNumber, kMostDevices> last_of_blocking;
    std::vector<Asked> asked;  // the last ones
};

// Never destroyed: OS threads may run tasks until the process has ended.
Queue& queue() {
    static Queue& only = *new Queue;
    return only;
}

std::atomic<bool> several_may_run{false};
std::atomic<unsigned> running_tasks{0};
std::atomic<unsigned> host_threads{0};
std::atomic<unsigned> at_once{0};          // how much work runs without a task
std::atomic<bool> at_once_in_vain{false};  // it polls for a value that another host thread may set

bool late() {
    return environment().streams.order != IssueOrder::issue;
}

bool is_done(const Task& task) {
    return task.state == Task::State::done;
}

bool is_ready(const Task& task) {
    return task.missing == 0 && task.state == Task::State::pending;
}

// The caller holds the lock.
void set_running(Queue& q, Task& task) {
    task.state = Task::State::running;
    q.ready.erase(task.number);
}

// The caller holds the lock.
void set_done(Queue& q, Task& task) {
    task.state = Task::State::done;
    task.after.clear();
    for (const TaskPointer& next : task.behind) {
        if (--next->missing == 0) q.ready.emplace(next->number, next);
    }
    task.behind.clear();
    q.last_of_blocking[static_cast<std::size_t>(task.device)].erase(task.number);
    q.open.erase(task.number);
    --q.open_count;
    ++q.changes;
}

void report_open_work() {
    Queue& q = queue();
    const std::scoped_lock lock(q.mutex);
    if (q.open.empty() || lost_context() != cudaSuccess) return;
    std::fflush(stdout);
    std::fprintf(stderr,
                 "cuda_on_cpu: the program ends while %zu operation(s) in its streams have not ended, and "
                 "may be lost. "
                 "Wait for them: cudaDeviceSynchronize()\n",
                 q.open.size());
}

void report_open_work_at_exit() {
    static const int registered = std::atexit(report_open_work);
    static_cast<void>(registered);
}

void run_any_task();

// Where work runs late, a host that polls memory or sleeps without calling CUDA would wait for
// ever. So after a while the work runs anyway, as it would have done long before on a GPU.
[[noreturn]] void run_what_nobody_waits_for() {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
    constexpr unsigned kLooks = 4;
    Queue& q = queue();
    std::uint64_t seen = 0;
    unsigned unchanged = 0;
    for (;;) {
        std::this_thread::sleep_for(kBetweenLooks);
        const std::uint64_t now = q.changes;
        unchanged = now == seen && q.open_count > 0 ? unchanged + 1 : 0;
        seen = now;
        while (unchanged >= kLooks && q.open_count > 0 && q.waiting == 0 && running_tasks == 0)
            run_any_task();
    }
}

// Called by the first task that runs late.
void prepare_for_late_work() {
    report_open_work_at_exit();
    static std::once_flag once;
    std::call_once(once, [] { std::thread(run_what_nobody_waits_for).detach(); });
}

void start_ready_tasks();

// The caller does not hold the lock.
void execute(const TaskPointer& task) {
    Task* const before = std::exchange(task_of_os_thread, task.get());
    ++running_tasks;
    const DeviceScope scope(task->device);
    const bool runs = task->work != nullptr && lost_context() == cudaSuccess;
    std::optional<DeviceWork> on_device;
    if (runs && !task->host_function) on_device.emplace();
    if (task->host_function) forget_changed_pages();
    const cudaError_t error = runs ? task->work() : cudaSuccess;
    on_device.reset();
    task_of_os_thread = before;
    --running_tasks;
    task->work = nullptr;
    if (error != cudaSuccess) lose_context(error);
    Queue& q = queue();
    const std::scoped_lock lock(q.mutex);
    set_done(q, *task);
    if (!late()) start_ready_tasks();
    q.changed.notify_all();
}

// False: the system has no more OS threads.
bool start_on_worker(const TaskPointer& task) {
    try {
        start_detached([task] { execute(task); });
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

// Starts work that could not run when it was issued. No host waits for it here, so each task gets
// its own OS thread.
void start_ready_tasks() {
    Queue& q = queue();
    while (!q.ready.empty()) {
        const TaskPointer task = q.ready.begin()->second;
        set_running(q, *task);
        task->host_goes_on = true;
        if (!start_on_worker(task)) {
            task->state = Task::State::pending;
            q.ready.emplace(task->number, task);
            return;
        }
    }
}

// Runs a task that is ready, and waits until it is done or the host may continue.
void run(std::unique_lock<std::mutex>& lock, const TaskPointer& task) {
    Queue& q = queue();
    set_running(q, *task);
    if (task->may_wait && start_on_worker(task)) {
        const auto over = [&] { return task->state == Task::State::done || task->host_goes_on; };
        if (!task->host_function) {
            q.changed.wait(lock, over);
        } else if (!q.changed.wait_for(lock, kPatience, over)) {
            task->host_goes_on = true;
            report_open_work_at_exit();
        }
        return;
    }
    lock.unlock();
    execute(task);
    lock.lock();
}

// The numbers of all open tasks that must be done before these tasks are. Not recursive, because a
// stream may hold any number of tasks.
Numbers needed_for(const std::vector<TaskPointer>& tasks) {
    Numbers needed;
    std::vector<const Task*> left;
    const auto add = [&](const std::vector<TaskPointer>& more) {
        for (const TaskPointer& task : more) {
            if (!is_done(*task) && needed.insert(task->number).second) left.push_back(task.get());
        }
    };
    add(tasks);
    while (!left.empty()) {
        const Task& task = *left.back();
        left.pop_back();
        add(task.after);
    }
    return needed;
}

// Selects the next task for a host that waits for the `needed` tasks, or for all open ones if
// `needed` is null. `late` runs as little as possible, and the task issued last first, so that
// tasks run in the wrong order if an event is missing.
TaskPointer choose(const Numbers* needed) {
    const TasksByNumber& ready = queue().ready;
    if (ready.empty()) return nullptr;
    const auto priority = [](const auto& each) { return each.second->priority; };
    const auto is_needed = [needed](const auto& each) {
        return needed == nullptr || needed->contains(each.first);
    };
    // If no needed task is ready, another task runs, because a running task may wait for it.
    switch (environment().streams.order) {
        case IssueOrder::random:
            return std::ranges::max_element(ready, {}, priority)->second;
        case IssueOrder::late: {
            const auto found = std::find_if(ready.rbegin(), ready.rend(), is_needed);
            return (found != ready.rend() ? found : ready.rbegin())->second;
        }
        case IssueOrder::issue:
            break;
    }
    const auto found = std::ranges::find_if(ready, is_needed);
    return (found != ready.end() ? found : ready.begin())->second;
}

// The caller holds the lock.
void run_or_yield(std::unique_lock<std::mutex>& lock, const Numbers* needed) {
    if (const TaskPointer next = choose(needed); next != nullptr) {
        run(lock, next);
    } else {
        lock.unlock();
        std::this_thread::yield();
    }
}

void run_any_task() {
    std::unique_lock lock(queue().mutex);
    run_or_yield(lock, nullptr);
}

std::vector<TaskPointer> tasks_in(const TasksByNumber& tasks) {
    std::vector<TaskPointer> all;
    all.reserve(tasks.size());
    for (const auto& [number, task] : tasks)
        all.push_back(task);
    return all;
}

// The caller holds the lock. Returns the tasks on which the stream's next task depends.
std::vector<TaskPointer> before_next(const StreamTail& tail) {
    Queue& q = queue();
    if (tail.legacy) return tasks_in(q.last_of_blocking[static_cast<std::size_t>(tail.device)]);
    std::vector<TaskPointer> before;
    const auto add = [&before](const TaskPointer& task) {
        if (task != nullptr && !is_done(*task)) before.push_back(task);
    };
    add(tail.task);
    if (tail.blocking) add(q.last_of_legacy[static_cast<std::size_t>(tail.device)]);
    return before;
}

// For random:SEED: a stream keeps its priority for about 16 tasks.
constexpr std::size_t kTasksOfAPriority = 16;

bool draws_priorities() {
    return environment().streams.order == IssueOrder::random;
}

std::uint64_t draw_priority() {
    return 1 + draw_index(std::size_t{1} << 32);
}

// Is the open task with this number one that `task`, which is in the queue, does not depend on?
bool is_beside(const Task& task, std::uint64_t number) {
    return number > task.number || std::ranges::binary_search(task.beside, number);
}

// The caller holds the lock, and has set `after` of the task. The task depends on everything that a
// task in its `after` depends on. Those that are left are `beside` each of these, or were issued
// later.
void note_beside(const Queue& q, Task& task) {
    std::vector<const Task*> after;
    for (const TaskPointer& before : task.after) {
        if (!is_done(*before)) after.push_back(before.get());
    }
    const auto last = std::ranges::max_element(after, {}, &Task::number);
    const auto add = [&](std::uint64_t number) {
        if (std::ranges::all_of(after, [=](const Task* before) { return is_beside(*before, number); }))
            task.beside.push_back(number);
    };
    if (last != after.end()) {
        for (const std::uint64_t number : (*last)->beside) {
            if (q.open.contains(number)) add(number);
        }
    }
    for (auto at = q.open.upper_bound(last == after.end() ? 0 : (*last)->number); at != q.open.end(); ++at)
        add(at->first);
}

void append(Queue& q, const TaskPointer& task, const StreamTail& tail) {
    if (launch_observer != nullptr) note_beside(q, *task);
    task->priority = tail.priority;
    task->number = ++q.issued;
    ++q.changes;
    task->device = tail.device;
    std::erase_if(task->after, [](const TaskPointer& before) { return is_done(*before); });
    for (const TaskPointer& before : task->after)
        before->behind.push_back(task);
    task->missing = task->after.size();
    q.open.emplace(task->number, task);
    if (is_ready(*task)) q.ready.emplace(task->number, task);
    ++q.open_count;
}

void end_stream_in(Queue& q, StreamTail& tail, const TaskPointer& task) {
    const auto device = static_cast<std::size_t>(tail.device);
    TasksByNumber& last_of_blocking = q.last_of_blocking[device];
    if (tail.legacy) {
        last_of_blocking.clear();
        q.last_of_legacy[device] = task;
    } else if (tail.blocking) {
        for (const TaskPointer& before : {tail.task, q.last_of_legacy[device]})
            if (before != nullptr) last_of_blocking.erase(before->number);
    }
    if (tail.legacy || tail.blocking) last_of_blocking.emplace(task->number, task);
    tail.task = task;
}

}  // namespace

bool work_is_deferred() {
    return late() || queue().open_count.load(std::memory_order_acquire) > 0;
}

void expect_concurrency() {
    several_may_run.store(true, std::memory_order_relaxed);
}

bool concurrency_expected() {
    return several_devices() || several_may_run.load(std::memory_order_relaxed);
}

void issue_task(const TaskPointer& task, StreamTail& tail, const std::vector<TaskPointer>& others) {
    Queue& q = queue();
    std::unique_lock lock(q.mutex);
    task->after = before_next(tail);
    task->after.insert(task->after.end(), others.begin(), others.end());
    if (draws_priorities() && (tail.priority == 0 || draw_index(kTasksOfAPriority) == 0))
        tail.priority = draw_priority();
    append(q, task, tail);
    end_stream_in(q, tail, task);
    if (late()) {
        prepare_for_late_work();
    } else if (is_ready(*task)) {
        run(lock, task);
    }
}

void issue_graph(const std::vector<TaskPointer>& tasks, StreamTail& tail, const TaskPointer& also_after) {
    Queue& q = queue();
    std::unique_lock lock(q.mutex);
    std::vector<TaskPointer> before = before_next(tail);
    if (also_after != nullptr) before.push_back(also_after);
    for (const TaskPointer& task : tasks) {
        if (task->after.empty()) task->after = before;
        append(q, task, tail);
        if (draws_priorities()) task->priority = draw_priority();
    }
    end_stream_in(q, tail, tasks.back());
    if (late()) {
        prepare_for_late_work();
        return;
    }
    for (const TaskPointer& task : tasks) {
        if (is_ready(*task)) run(lock, task);
    }
}

std::vector<TaskPointer> open_tasks_of(const StreamTail& tail) {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return {};
    const std::scoped_lock lock(queue().mutex);
    std::vector<TaskPointer> open = before_next(tail);
    if (!tail.legacy) {
        std::erase_if(open, [&](const TaskPointer& task) { return task != tail.task; });
    }
    return open;
}

bool waits_in(const StreamTail& tail) {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return false;
    const std::scoped_lock lock(queue().mutex);
    return !before_next(tail).empty();
}

std::vector<TaskPointer> all_open_tasks() {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return {};
    const std::scoped_lock lock(queue().mutex);
    return tasks_in(queue().open);
}

std::vector<TaskPointer> open_tasks_of_device(int device) {
    std::vector<TaskPointer> open = all_open_tasks();
    std::erase_if(open, [device](const TaskPointer& task) { return task->device != device; });
    return open;
}

void wait_for(std::vector<TaskPointer> tasks) {
    if (tasks.empty()) return;
    Queue& q = queue();
    ++q.waiting;
    std::unique_lock lock(q.mutex);
    const Numbers needed = needed_for(tasks);
    for (;;) {
        while (!tasks.empty() && is_done(*tasks.back()))
            tasks.pop_back();
        if (tasks.empty()) break;
        if (const TaskPointer next = choose(&needed); next != nullptr) {
            run(lock, next);
        } else {
            q.changed.wait(lock);
        }
    }
    --q.waiting;
}

bool poll_tasks(const std::vector<TaskPointer>& tasks) {
    Queue& q = queue();
    std::unique_lock lock(q.mutex);
    const bool done = std::ranges::all_of(tasks, [](const TaskPointer& task) { return is_done(*task); });
    auto known = std::ranges::find(q.asked, tasks, &Asked::tasks);
    if (known == q.asked.end()) {
        if (done) return true;
        if (q.asked.size() == kMostAsked) q.asked.erase(q.asked.begin());
        known = q.asked.insert(q.asked.end(), {tasks, needed_for(tasks)});
    }
    if (done)
        q.asked.erase(known);
    else
        run_or_yield(lock, &known->needed);
    return done;
}

bool is_done(const TaskPointer& task) {
    if (task == nullptr) return true;
    const std::scoped_lock lock(queue().mutex);
    return is_done(*task);
}

Task* running_task() {
    return task_of_os_thread;
}

bool other_work_runs() {
    return host_threads > 1 || running_tasks > (task_of_os_thread != nullptr ? 1 : 0);
}

unsigned running_task_count() {
    return running_tasks;
}

void note_host_thread() {
    constinit thread_local static bool noted = false;
    if (noted || task_of_os_thread != nullptr) return;
    noted = true;
    if (++host_threads == 1) return;
    constexpr auto kBetweenLooks = std::chrono::microseconds(100);
    while (at_once > 0 && !at_once_in_vain)
        std::this_thread::sleep_for(kBetweenLooks);
}

WorkAtOnce::WorkAtOnce() {
    note_host_thread();
    if (work_is_deferred()) return;
    ++at_once;
    permitted_ = host_threads == 1;  // asked after the increment, as a new thread asks after its own
    if (permitted_) {
        at_once_in_vain = false;
        work_.emplace();
    } else {
        --at_once;
    }
}

WorkAtOnce::~WorkAtOnce() {
    work_.reset();
    if (permitted_) --at_once;
}

void let_host_go_on(Task* task) {
    if (task == nullptr) {
        at_once_in_vain = true;
        return;
    }
    Queue& q = queue();
    const std::scoped_lock lock(q.mutex);
    if (task->host_goes_on) return;
    task->host_goes_on = true;
    report_open_work_at_exit();
    q.changed.notify_all();
}

void host_polls() {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return;
    run_any_task();
}

bool in_host_function() {
    return host_function;
}

Work as_host_function(Work work) {
    return [work = std::move(work)] {
        const bool before = std::exchange(host_function, true);
        const cudaError_t error = work();
        host_function = before;
        return error;
    };
}

std::size_t draw_index(std::size_t count) {
    switch (environment().streams.order) {
        case IssueOrder::issue:
            return 0;
        case IssueOrder::late:
            return count - 1;
        case IssueOrder::random:
            break;
    }
    static std::mutex mutex;
    static std::mt19937_64 random(environment().streams.seed);
    const std::scoped_lock lock(mutex);
    return static_cast<std::size_t>(random() % count);
}

}  // namespace cuda_on_cpu
