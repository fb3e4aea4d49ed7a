#include "child_grids.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "block.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "launch_state.hpp"

namespace cuda_on_cpu {
namespace {

ChildGrids& children() {
    LaunchState& launch = runner_of_os_thread->launch();
    ChildGrids* const known = launch.children;
    return known != nullptr ? *known : launch.make_children();
}

std::uint64_t block_number() {
    return blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
}

unsigned thread_number() {
    return current_warp * kWarpLanes + current_lane;
}

bool is_of_grid(cudaStream_t stream) {
    return stream == cudaStreamFireAndForget || stream == cudaStreamTailLaunch;
}

cudaError_t check(cudaStream_t stream, const char* function) {
    return is_of_grid(stream) ? cudaSuccess : check_stream(stream, function);
}

// Grids and copies of all kernels that have not begun, and how many may be.
std::atomic<std::size_t> pending{0};
std::atomic<std::size_t> pending_limit{kPendingLaunches};

// On a GPU only the thread gets the error, and few kernels look at it.
void tell_once(std::once_flag& told, const char* kernel_name, const std::string& why) {
    std::call_once(told, [&] {
        std::fprintf(stderr, "cuda_on_cpu: kernel %s, launched by a kernel: %s\n", kernel_name, why.c_str());
    });
}

}  // namespace

void set_pending_launch_limit(std::size_t limit) {
    pending_limit = limit;
}

cudaError_t check_child(cudaStream_t stream, const char* kernel_name) {
    if (stream != cudaStreamTailLaunch && runner_of_os_thread->launch().nesting >= kDeepestChild) {
        static std::once_flag told;
        tell_once(told, kernel_name,
                  "grids are nested " + std::to_string(kDeepestChild + 1) + " deep; a GPU allows " +
                      std::to_string(kDeepestChild) + " (cudaErrorLaunchMaxDepthExceeded)");
        return set_last_error(cudaErrorLaunchMaxDepthExceeded);
    }
    if (pending >= pending_limit) {
        static std::once_flag told;
        tell_once(told, kernel_name,
                  std::to_string(pending) +
                      " grids wait to begin, as many as cudaLimitDevRuntimePendingLaunchCount allows "
                      "(cudaErrorLaunchPendingCountExceeded); raise it with cudaDeviceSetLimit()");
        return set_last_error(cudaErrorLaunchPendingCountExceeded);
    }
    return cudaSuccess;
}

cudaError_t submit_by_kernel(cudaStream_t stream, const char* function, StreamOperation operation) {
    if (operation.host_waits)
        return refuse(cudaErrorNotPermitted, function, "not in a kernel, which cannot wait for it");
    if (const cudaError_t error = check(stream, function); error != cudaSuccess) return error;
    children().add(block_number(), stream, std::move(operation.work));
    if (environment().early_children) children().run_those_of(block_number());
    return cudaSuccess;
}

cudaError_t record_event_by_kernel(cudaEvent_t event, cudaStream_t stream) {
    if (const cudaError_t error = check(stream, "cudaEventRecord"); error != cudaSuccess) return error;
    children().record(block_number(), event, stream);
    return cudaSuccess;
}

cudaError_t wait_for_event_by_kernel(cudaStream_t stream, cudaEvent_t event) {
    if (const cudaError_t error = check(stream, "cudaStreamWaitEvent"); error != cudaSuccess) return error;
    children().wait(block_number(), stream, event);
    return cudaSuccess;
}

cudaError_t synchronize_by_kernel() {
    static std::once_flag told;
    std::call_once(told, [] {
        std::fprintf(stderr,
                     "cuda_on_cpu: cudaDeviceSynchronize() in a kernel: CUDA 12 has removed it, and nvcc "
                     "refuses it. Here the "
                     "child grids of the block run now. Put what uses their results into a kernel of its own "
                     "and launch "
                     "that with <<<..., ..., 0, cudaStreamTailLaunch>>>\n");
    });
    children().run_those_of(block_number());
    return last_error_by_kernel(false);
}

std::shared_ptr<GraphRun> graph_run_of_kernel() {
    return runner_of_os_thread->launch().graph_run;
}

void set_last_error_by_kernel(cudaError_t error) {
    const std::scoped_lock lock(children().mutex());
    children().last_error(block_number(), thread_number()) = error;
}

cudaError_t last_error_by_kernel(bool clear) {
    if (runner_of_os_thread->launch().children == nullptr) return cudaSuccess;
    const std::scoped_lock lock(children().mutex());
    cudaError_t& error = children().last_error(block_number(), thread_number());
    return clear ? std::exchange(error, cudaSuccess) : error;
}

// --- ChildGrids ----------------------------------------------------------------------------------

// The caller holds the lock.
ChildGrids::ChildPointer ChildGrids::append(std::uint64_t block, cudaStream_t stream, Work work) {
    auto child = std::make_shared<Child>();
    child->block = block;
    child->work = std::move(work);
    if (child->work != nullptr) ++pending;
    if (stream != cudaStreamFireAndForget) {
        // Each block has its own default stream; other streams belong to the whole grid.
        const std::pair key =
            is_default(stream) ? std::pair{block, cudaStream_t{nullptr}} : std::pair{kAllBlocks, stream};
        child->previous = std::exchange(last_in_stream_[key], child);
    }
    open_.push_back(child);
    return child;
}

void ChildGrids::add(std::uint64_t block, cudaStream_t stream, Work work) {
    const std::scoped_lock lock(mutex_);
    if (stream == cudaStreamTailLaunch) {
        tails_.push_back(std::move(work));
        ++pending;
    } else {
        append(block, stream, std::move(work));
    }
}

void ChildGrids::record(std::uint64_t block, cudaEvent_t event, cudaStream_t stream) {
    const std::scoped_lock lock(mutex_);
    recorded_[event] = append(block, stream, nullptr);
}

void ChildGrids::wait(std::uint64_t block, cudaStream_t stream, cudaEvent_t event) {
    const std::scoped_lock lock(mutex_);
    const auto found = recorded_.find(event);
    if (found != recorded_.end()) append(block, stream, nullptr)->recorded = found->second;
}

ChildGrids::ChildPointer ChildGrids::take(std::uint64_t block) {
    const std::scoped_lock lock(mutex_);
    std::vector<ChildPointer> ready;
    for (const ChildPointer& child : open_) {
        const bool waits = (child->previous != nullptr && !child->previous->done) ||
                           (child->recorded != nullptr && !child->recorded->done);
        if (!waits && !child->taken && (block == kAllBlocks || child->block == block)) ready.push_back(child);
    }
    if (ready.empty()) return nullptr;
    const ChildPointer next = ready[draw_index(ready.size())];
    next->taken = true;
    if (next->work != nullptr) --pending;
    return next;
}

void ChildGrids::finish(const ChildPointer& child) {
    const std::scoped_lock lock(mutex_);
    child->done = true;
    child->work = nullptr;
    child->previous = nullptr;
    child->recorded = nullptr;
    std::erase(open_, child);
}

void ChildGrids::run_those_of(std::uint64_t block) {
    while (const ChildPointer child = take(block)) {
        Team team;
        if (child->work != nullptr && lost_context() == cudaSuccess)
            team.start([&child, graph = runner_of_os_thread->launch().graph_run] {
                const GraphScope of_graph(graph);
                static_cast<void>(child->work());
            });
        team.wait();
        finish(child);
    }
}

void ChildGrids::start_now() {
    {
        const std::scoped_lock lock(mutex_);
        if (started_ || open_.empty()) return;
        started_ = true;
    }
    early_.start([this, graph = runner_of_os_thread->launch().graph_run] {
        const GraphScope of_graph(graph);
        run_all();
        const std::scoped_lock lock(mutex_);
        started_ = false;
    });
}

void ChildGrids::run_all() {
    while (const ChildPointer child = take(kAllBlocks)) {
        if (child->work != nullptr && lost_context() == cudaSuccess) static_cast<void>(child->work());
        finish(child);
    }
}

std::deque<Work> ChildGrids::take_tails() {
    early_.wait();
    run_all();
    const std::scoped_lock lock(mutex_);
    pending -= tails_.size();
    return std::exchange(tails_, {});
}

}  // namespace cuda_on_cpu
