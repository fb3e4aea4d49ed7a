#include "cuda_on_cpu/host_work.h"

#include "capture.hpp"
#include "cuda_on_cpu/thread.h"
#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "library_arguments.hpp"
#include "managed_watch.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "stream.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {

cudaError_t submit_host_work(cudaStream_t stream, const char* function, std::function<void()> work) {
    return submit(stream, function, [work = std::move(work)] {
        if (memory_observer != nullptr) memory_observer->unwatched_launch();
        work();
        return cudaSuccess;
    });
}

bool check_device_memory(const char* function, const char* argument, const void* pointer, std::size_t bytes) {
    return reachable(function, {.name = argument, .pointer = pointer, .bytes = bytes});
}

cudaError_t begin_host_work(cudaStream_t stream) {
    // Algorithms of two host threads are not ordered: this call cannot tell when its algorithm
    // ends.
    if (!in_kernel()) {
        note_host_thread();
        open_to_host();  // for the same reason
        forget_changed_pages();
    }
    // The usual case, checked for each element that the host reads through a Thrust reference.
    if (!work_is_deferred() && !somebody_captures() && lost_context() == cudaSuccess &&
        memory_observer == nullptr)
        return cudaSuccess;
    if (in_kernel()) return cudaSuccess;
    const cudaError_t error = cudaStreamSynchronize(stream);
    if (memory_observer != nullptr) memory_observer->unwatched_launch();
    return error;
}

}  // namespace cuda_on_cpu
