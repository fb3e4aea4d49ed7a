#include "worker_pool.hpp"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "pages.hpp"

namespace cuda_on_cpu {
namespace {

// An OS thread that is kept for reuse. It never ends: idle workers sleep until the process exits.
struct Worker {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void()> work;
};

// Never destroyed, because a worker may get here while the program's static objects are destroyed,
// and their destructors may launch kernels.
struct Idle {
    std::mutex mutex;
    std::vector<Worker*> workers;
};
Idle& idle() {
    static auto& all = *new Idle;
    return all;
}

void* worker_main(void* argument) {
    prepare_thread_for_faults();
    auto& self = *static_cast<Worker*>(argument);
    for (;;) {
        std::function<void()> work;
        {
            std::unique_lock lock(self.mutex);
            self.changed.wait(lock, [&self] { return self.work != nullptr; });
            work = std::exchange(self.work, nullptr);
        }
        work();
    }
}

// Thread-local objects, which include all `__shared__` arrays, take their space from an OS thread's
// stack.
std::size_t thread_local_bytes() {
    std::size_t bytes = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* sum) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type == PT_TLS)
                    *static_cast<std::size_t*>(sum) += info->dlpi_phdr[i].p_memsz;
            }
            return 0;
        },
        &bytes);
    return bytes;
}

// Thread-local objects are at the end of an OS thread's stack. Behind it lie guard pages, which a
// wrong index of a `__shared__` array meets, and before it those for a stack that overflows.
class WorkerStack {
  public:
    WorkerStack() : size_((1U << 20) + round_up_to_pages(thread_local_bytes() + 1)) {
        void* memory = mmap(nullptr, size_ + 2 * guard_size(), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) return;
        begin_ = static_cast<char*>(memory) + guard_size();
        if (mprotect(begin_, size_, PROT_READ | PROT_WRITE) != 0) give_back();
    }
    void* begin() const { return begin_; }
    std::size_t size() const { return size_; }
    void give_back() {
        if (begin_ != nullptr) munmap(begin_ - guard_size(), size_ + 2 * guard_size());
        begin_ = nullptr;
    }

  private:
    std::size_t size_;
    char* begin_ = nullptr;
};

Worker* new_worker() {
    auto* worker = new Worker;
    WorkerStack stack;  // stays, as the worker does
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int error = EAGAIN;
    if (stack.begin() != nullptr) {
        pthread_attr_setstack(&attributes, stack.begin(), stack.size());
        error = pthread_create(&thread, &attributes, worker_main, worker);
    }
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        stack.give_back();
        delete worker;
        throw std::system_error(error, std::generic_category(),
                                "cuda_on_cpu: one more OS thread for a block");
    }
    return worker;
}

Worker* take_worker() {
    Idle& all = idle();
    const std::scoped_lock lock(all.mutex);
    if (all.workers.empty()) return new_worker();
    Worker* worker = all.workers.back();
    all.workers.pop_back();
    return worker;
}

void give_back(Worker* worker) {
    Idle& all = idle();
    const std::scoped_lock lock(all.mutex);
    all.workers.push_back(worker);
}

}  // namespace

void start_detached(std::function<void()> work) {
    Worker* worker = take_worker();
    const std::scoped_lock lock(worker->mutex);
    worker->work = [worker, work = std::move(work)] {
        work();
        give_back(worker);
    };
    worker->changed.notify_one();
}

void Team::start(std::function<void()> work) {
    Worker* worker = take_worker();
    {
        const std::scoped_lock lock(mutex_);
        ++running_;
    }
    const std::scoped_lock lock(worker->mutex);
    worker->work = [this, worker, work = std::move(work)] {
        work();
        give_back(worker);
        const std::scoped_lock team_lock(mutex_);
        if (--running_ == 0) ended_.notify_all();
    };
    worker->changed.notify_one();
}

void Team::wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace cuda_on_cpu
