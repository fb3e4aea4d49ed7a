#include "fibre.hpp"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <cstdio>
#include <cstdlib>

namespace cuda_on_cpu {
namespace {

// Nothing can be thrown: this may be reached from a fibre, whose stack no handler is on.
[[noreturn]] void no_room() {
    std::perror("cuda_on_cpu: no room for the stacks of a block's threads (ulimit -v, vm.max_map_count?)");
    std::abort();
}

// AddressSanitizer marks what lies around the variables of a function that runs, and takes the marks away when it returns.
// The functions of a thread that failed never do.
void unpoison([[maybe_unused]] void* stack, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, size);
#endif
}

}  // namespace

FibreStacks::~FibreStacks() {
    if (memory_ != nullptr) munmap(memory_, kStacks * kStride + kPage);
}

void FibreStacks::create(Fibre& fibre, void (*entry)(boost::context::detail::transfer_t)) {
    if (fibre.stack_bottom == nullptr) {
        if (memory_ == nullptr) {
            // Reserved, not used: pages cost memory when a thread first blocks that deep.
            void* memory = mmap(nullptr, kStacks * kStride + kPage, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) no_room();
            memory_ = static_cast<char*>(memory);
            if (mprotect(memory_, kPage, PROT_NONE) != 0) no_room();
        }
        // A guard page below, where a stack that grows too large ends, and one above, where a write past a local array does.
        char* guard = memory_ + used_++ * kStride;
        if (mprotect(guard + kStride, kPage, PROT_NONE) != 0) no_room();
        fibre.stack_bottom = guard + kPage;
        fibre.stack_size = kStride - kPage;
    }
    unpoison(fibre.stack_bottom, fibre.stack_size);
    // Stacks lie whole pages apart, and an L1 cache chooses its set by the place within a page: equal frames of different
    // threads would fight for the same few sets. So each stack begins a few cache lines lower than the last.
    const auto number = static_cast<std::size_t>(static_cast<char*>(fibre.stack_bottom) - memory_) / kStride;
    const std::size_t unused = number * kLinesApart * kCacheLine % kPage;
    fibre.context = boost::context::detail::make_fcontext(
        static_cast<char*>(fibre.stack_bottom) + fibre.stack_size - unused, fibre.stack_size - unused, entry);
}

bool FibreStacks::in_guard_page(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    if (memory_ == nullptr || byte < memory_ || byte >= memory_ + used_ * kStride + kPage) return false;
    return static_cast<std::size_t>(byte - memory_) % kStride < kPage;
}

}  // namespace cuda_on_cpu
