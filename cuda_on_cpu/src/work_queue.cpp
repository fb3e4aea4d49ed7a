#include "work_queue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "devices.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "observer.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

constinit thread_local Task* task_of_os_thread = nullptr;
constinit thread_local bool host_function = false;
constexpr auto kPatience = std::chrono::milliseconds(20);  // with a host function, before the host goes on

struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::list<TaskPointer> open;  // in the order of issue
    std::atomic<std::size_t> open_count{0};
    std::uint64_t issued = 0;
    std::atomic<std::uint64_t> changes{0};                 // tasks issued or done
    std::atomic<unsigned> waiting{0};                      // hosts that wait
    std::array<TaskPointer, kMostDevices> last_of_legacy;  // of each device
};

// Never destroyed: OS threads may run tasks until the process has ended.
Queue& queue() {
    static Queue& only = *new Queue;
    return only;
}

std::atomic<bool> several_may_run{false};
std::atomic<unsigned> running_tasks{0};
std::atomic<unsigned> host_threads{0};

bool late() {
    return environment().streams.order != IssueOrder::issue;
}

bool is_ready(Task& task) {
    std::erase_if(task.after, [](const TaskPointer& before) { return before->state == Task::State::done; });
    return task.after.empty() && task.state == Task::State::pending;
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

// Where work runs late, a host that polls memory, or sleeps, and calls nothing of CUDA would wait
// for ever: after a while the work runs all the same, as it would have long since on a GPU.
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
            ask_for(all_open_tasks());
    }
}

// In the first task that runs late.
void prepare_for_late_work() {
    report_open_work_at_exit();
    static std::once_flag once;
    std::call_once(once, [] { std::thread(run_what_nobody_waits_for).detach(); });
}

void start_ready_tasks();

// Without the lock.
void execute(const TaskPointer& task) {
    Task* const before = std::exchange(task_of_os_thread, task.get());
    ++running_tasks;
    const DeviceScope scope(task->device);
    const bool runs = task->work != nullptr && lost_context() == cudaSuccess;
    const cudaError_t error = runs ? task->work() : cudaSuccess;
    task_of_os_thread = before;
    --running_tasks;
    task->work = nullptr;
    if (error != cudaSuccess) lose_context(error);
    Queue& q = queue();
    const std::scoped_lock lock(q.mutex);
    task->state = Task::State::done;
    q.open.remove(task);
    --q.open_count;
    ++q.changes;
    if (!late()) start_ready_tasks();
    q.changed.notify_all();
}

// False: the system gives no more OS threads.
bool start_on_worker(const TaskPointer& task) {
    try {
        start_detached([task] { execute(task); });
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

// Work that could not run when it was issued. Nothing waits for it here, so each task has an OS
// thread of its own.
void start_ready_tasks() {
    Queue& q = queue();
    for (const TaskPointer& task : q.open) {
        if (!is_ready(*task)) continue;
        task->state = Task::State::running;
        task->host_goes_on = true;
        if (!start_on_worker(task)) {
            task->state = Task::State::pending;
            return;
        }
    }
}

// Runs a task that is ready and waits until it is done or the host may go on.
void run(std::unique_lock<std::mutex>& lock, const TaskPointer& task) {
    Queue& q = queue();
    task->state = Task::State::running;
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

void add_ready_before(const TaskPointer& task, std::set<Task*>& seen, std::vector<TaskPointer>& ready) {
    if (task->state != Task::State::pending || !seen.insert(task.get()).second) return;
    if (is_ready(*task)) {
        ready.push_back(task);
        return;
    }
    for (const TaskPointer& before : task->after)
        add_ready_before(before, seen, ready);
}

std::vector<TaskPointer> ready_tasks() {
    std::vector<TaskPointer> ready;
    for (const TaskPointer& task : queue().open) {
        if (is_ready(*task)) ready.push_back(task);
    }
    return ready;
}

// Which one runs next for a host that waits for `targets`? `late` runs as little as it can, the
// task issued last first: what a missing event leaves open then comes in the wrong order.
TaskPointer choose(const std::vector<TaskPointer>& targets) {
    std::vector<TaskPointer> ready;
    if (environment().streams.order != IssueOrder::random) {
        std::set<Task*> seen;
        for (const TaskPointer& target : targets)
            add_ready_before(target, seen, ready);
    }
    // Something that is running may wait for a task that none of the targets comes after.
    if (ready.empty()) ready = ready_tasks();
    if (ready.empty()) return nullptr;
    if (environment().streams.order == IssueOrder::random)
        return *std::ranges::max_element(ready, {}, [](const TaskPointer& task) { return task->priority; });
    std::sort(ready.begin(), ready.end(),
              [](const TaskPointer& a, const TaskPointer& b) { return a->number < b->number; });
    return ready[draw_index(ready.size())];
}

// With the lock. The tasks that a new one in the stream comes after.
std::vector<TaskPointer> before_next(const StreamTail& tail) {
    Queue& q = queue();
    std::vector<TaskPointer> before;
    if (tail.legacy) {
        std::copy_if(q.open.begin(), q.open.end(), std::back_inserter(before),
                     [&](const TaskPointer& task) { return task->blocking && task->device == tail.device; });
        return before;
    }
    const auto add = [&before](const TaskPointer& task) {
        if (task != nullptr && task->state != Task::State::done) before.push_back(task);
    };
    add(tail.task);
    if (tail.blocking) add(q.last_of_legacy[static_cast<std::size_t>(tail.device)]);
    return before;
}

// With random:SEED. A stream keeps its priority for about sixteen tasks.
constexpr std::size_t kTasksOfAPriority = 16;

bool draws_priorities() {
    return environment().streams.order == IssueOrder::random;
}

std::uint64_t draw_priority() {
    return 1 + draw_index(std::size_t{1} << 32);
}

void add_all_before(const Task& task, std::set<const Task*>& before) {
    for (const TaskPointer& each : task.after) {
        if (before.insert(each.get()).second) add_all_before(*each, before);
    }
}

// With the lock, and its `after`.
void note_beside(const Queue& q, Task& task) {
    std::set<const Task*> before;
    add_all_before(task, before);
    for (const TaskPointer& open : q.open) {
        if (!before.contains(open.get())) task.beside.push_back(open->number);
    }
}

void append(Queue& q, const TaskPointer& task, const StreamTail& tail) {
    if (launch_observer != nullptr) note_beside(q, *task);
    task->priority = tail.priority;
    task->number = ++q.issued;
    ++q.changes;
    task->blocking = tail.blocking || tail.legacy;
    task->device = tail.device;
    q.open.push_back(task);
    ++q.open_count;
}

void end_stream_in(Queue& q, StreamTail& tail, const TaskPointer& task) {
    tail.task = task;
    if (tail.legacy) q.last_of_legacy[static_cast<std::size_t>(tail.device)] = task;
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

std::vector<TaskPointer> all_open_tasks() {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return {};
    const std::scoped_lock lock(queue().mutex);
    return {queue().open.begin(), queue().open.end()};
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
    for (;;) {
        std::erase_if(tasks, [](const TaskPointer& task) { return task->state == Task::State::done; });
        if (tasks.empty()) break;
        if (const TaskPointer next = choose(tasks); next != nullptr) {
            run(lock, next);
        } else {
            q.changed.wait(lock);
        }
    }
    --q.waiting;
}

bool ask_for(const std::vector<TaskPointer>& tasks) {
    Queue& q = queue();
    std::unique_lock lock(q.mutex);
    const bool done = std::all_of(tasks.begin(), tasks.end(),
                                  [](const TaskPointer& task) { return task->state == Task::State::done; });
    if (done) return true;
    if (const TaskPointer next = choose(tasks); next != nullptr) {
        run(lock, next);
    } else {
        lock.unlock();
        std::this_thread::yield();
    }
    return false;
}

bool is_done(const TaskPointer& task) {
    if (task == nullptr) return true;
    const std::scoped_lock lock(queue().mutex);
    return task->state == Task::State::done;
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
    if (!noted) ++host_threads;
    noted = true;
}

void let_host_go_on(Task* task) {
    if (task == nullptr) return;
    Queue& q = queue();
    const std::scoped_lock lock(q.mutex);
    if (task->host_goes_on) return;
    task->host_goes_on = true;
    report_open_work_at_exit();
    q.changed.notify_all();
}

void host_polls() {
    if (queue().open_count.load(std::memory_order_acquire) == 0) return;
    ask_for(all_open_tasks());
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
