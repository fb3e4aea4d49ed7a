#include "fibre.hpp"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cuda_on_cpu {
namespace {

std::atomic<std::size_t> all_writable{0};  // writable stacks of all OS threads

// Linux 6.13 has guard pages that need no separate mapping. Older headers do not define the number.
constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL

bool install_guard(char* page, std::size_t size) {
    return madvise(page, size, kInstallGuard) == 0 || mprotect(page, size, PROT_NONE) == 0;
}

// Aborts instead of throwing, because it may run on a fibre, whose stack has no exception handler.
[[noreturn]] void no_room() {
    std::perror("cuda_on_cpu: no room for the stacks of a block's threads (ulimit -v, vm.max_map_count?)");
    std::abort();
}

// AddressSanitizer poisons the memory around a function's variables and unpoisons it when the
// function returns. The functions of a failed thread never return, so their stacks must be
// unpoisoned here.
void unpoison([[maybe_unused]] void* stack, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, size);
#endif
}

// A fibre may renew itself before it switches to another one.
void renew_for_thread_sanitizer([[maybe_unused]] Fibre& fibre) {
#ifdef __SANITIZE_THREAD__
    void*& known = fibre.of_thread_sanitizer;
    if (known != nullptr && known != __tsan_get_current_fiber()) __tsan_destroy_fiber(known);
    known = __tsan_create_fiber(0);
#endif
}

#ifndef CUDA_ON_CPU_SWITCHES_ITSELF
FibreEntry boost_entry = nullptr;  // of all fibres

// The second half of switch_fibre, in a new fibre.
void begin(boost::context::detail::transfer_t arrival) {
    auto* left = static_cast<Fibre*>(arrival.data);
    left->context = arrival.fctx;
#ifdef CUDA_ON_CPU_ASAN
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    if (left->stack_bottom == nullptr) {  // an OS thread's own stack, whose bounds only the sanitizer knows
        left->stack_bottom = const_cast<void*>(bottom);
        left->stack_size = size;
    }
#endif
    boost_entry();
}
#endif

}  // namespace

void* new_context(void* stack_top, [[maybe_unused]] std::size_t stack_size, FibreEntry entry) {
#ifdef CUDA_ON_CPU_SWITCHES_ITSELF
    auto** context = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack_top) / 16 * 16);
    *--context = nullptr;  // in place of a return address, so that a debugger ends its backtrace here
    *--context = reinterpret_cast<void*>(entry);
    return context;
#else
    boost_entry = entry;
    return boost::context::detail::make_fcontext(stack_top, stack_size, begin);
#endif
}

bool guards_take_mappings() {
    static const bool take = [] {
        void* page = mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return true;
        const bool light = madvise(page, page_size(), kInstallGuard) == 0;
        munmap(page, page_size());
        return !light;
    }();
    return take;
}

FibreStacks::~FibreStacks() {
    if (memory_ == nullptr) return;
    munmap(memory_, kStacks * stride() + page_size());
    all_writable -= writable_;
}

void FibreStacks::create(Fibre& fibre, FibreEntry entry) {
    if (fibre.stack_bottom == nullptr) {
        if (memory_ == nullptr) {
            // Reserves only addresses; memory limits count writable memory.
            void* memory = mmap(nullptr, kStacks * stride() + page_size(), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) no_room();
            memory_ = static_cast<char*>(memory);
        }
        if (used_ == writable_) {
            // A page only costs memory once a thread has used its stack that deeply.
            const std::size_t more = std::min(kStacksAtOnce, kStacks - writable_);
            char* begin = memory_ + writable_ * stride() + page_size();
            if (mprotect(begin, more * stride(), PROT_READ | PROT_WRITE) != 0) no_room();
            writable_ += more;
            all_writable += more;
        }
        // One guard page below the stack stops an overflow; one above stops a write past a local
        // array.
        char* guard = memory_ + used_++ * stride();
        if (!install_guard(guard + stride(), page_size())) no_room();
        fibre.stack_bottom = guard + page_size();
        fibre.stack_size = stride() - page_size();
    }
    unpoison(fibre.stack_bottom, fibre.stack_size);
    renew_for_thread_sanitizer(fibre);
    // Stacks are whole pages apart, and an L1 cache selects its set by the address within 4 KB, so
    // equal frames of different threads would compete for the same few sets. Each stack therefore
    // starts a few cache lines lower than the previous one.
    const auto number = static_cast<std::size_t>(static_cast<char*>(fibre.stack_bottom) - memory_) / stride();
    const std::size_t unused = number * kLinesApart * kCacheLine % kCacheWay;
    fibre.context = new_context(static_cast<char*>(fibre.stack_bottom) + fibre.stack_size - unused,
                                fibre.stack_size - unused, entry);
}

bool FibreStacks::room_for(std::size_t stacks) {
    const std::size_t made = all_writable;
    if (stacks <= made) return true;
    const std::size_t size = (stacks - made) * stride();
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED && munmap(memory, size) == 0;
}

bool FibreStacks::in_guard_page(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    if (memory_ == nullptr || byte < memory_ || byte >= memory_ + used_ * stride() + page_size())
        return false;
    return static_cast<std::size_t>(byte - memory_) % stride() < page_size();
}

}  // namespace cuda_on_cpu
