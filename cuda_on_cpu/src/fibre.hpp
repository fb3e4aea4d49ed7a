// A fibre: its own stack, and the point at which it was suspended. On x86-64 a few instructions
// switch fibres; on other processors Boost.Context does.
#pragma once

#include <cstddef>

#include "pages.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif
#endif
#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__) && !defined(CUDA_ON_CPU_ASAN)
#define CUDA_ON_CPU_SWITCHES_ITSELF 1
#else
#include <boost/context/detail/fcontext.hpp>
#endif

namespace cuda_on_cpu {

struct Fibre {
    void* context = nullptr;       // where to resume; valid only while suspended
    void* stack_bottom = nullptr;  // lowest usable address
    std::size_t stack_size = 0;
    void* of_thread_sanitizer = nullptr;  // ThreadSanitizer's handle of this fibre
};

// The function that a fibre on a new stack starts with. It never returns.
using FibreEntry = void (*)();
void* new_context(void* stack_top, std::size_t stack_size, FibreEntry entry);

#ifdef CUDA_ON_CPU_SWITCHES_ITSELF

#ifdef __AVX512F__
#define CUDA_ON_CPU_AVX512_REGISTERS                                                                     \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", \
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CUDA_ON_CPU_AVX512_REGISTERS
#endif

// ThreadSanitizer must be informed of each switch.
inline void announce_switch([[maybe_unused]] Fibre& from, [[maybe_unused]] const Fibre& to) {
#ifdef __SANITIZE_THREAD__
    from.of_thread_sanitizer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.of_thread_sanitizer, 0);
#endif
}

// Suspends `from` and resumes `to`. Returns when a fibre switches back to `from`. `context` is the
// stack pointer, and it points to the address to resume at.
//
// The function is inline and switches with a jump. Processors predict returns with a stack of
// calls: if the switch were a call that is left by a jump, every return on the way back to the
// kernel would be mispredicted. The compiler saves those of the registers named below that it
// needs. The 128 bytes below the stack pointer (the red zone) may be in use.
[[gnu::always_inline]] inline void switch_fibre(Fibre& from, Fibre& to) {
    announce_switch(from, to);
    void** left = &from.context;
    void* next = to.context;
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\t"
        "push %%rbp\n\t"
        "push %%rbx\n\t"
        "lea 1f(%%rip), %%rax\n\t"
        "push %%rax\n\t"
        "mov %%rsp, (%[left])\n\t"
        "mov %[next], %%rsp\n\t"
        "pop %%rax\n\t"
        "jmp *%%rax\n"
        "1:\n\t"
        "pop %%rbx\n\t"
        "pop %%rbp\n\t"
        "lea 128(%%rsp), %%rsp"
        : [left] "+D"(left), [next] "+S"(next)
        :
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
          "xmm15" CUDA_ON_CPU_AVX512_REGISTERS, "cc", "memory");
}

#else

inline void switch_fibre(Fibre& from, Fibre& to) {
    void* fake_stack = nullptr;
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_start_switch_fiber(&fake_stack, to.stack_bottom, to.stack_size);
#endif
    const auto arrival = boost::context::detail::jump_fcontext(to.context, &from);
    // The fibre that switched here is suspended now.
    static_cast<Fibre*>(arrival.data)->context = arrival.fctx;
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
    static_cast<void>(fake_stack);
#endif
}

#endif

// Memory for fibres.
class FibreStacks {
  public:
    FibreStacks() = default;
    FibreStacks(const FibreStacks&) = delete;
    FibreStacks& operator=(const FibreStacks&) = delete;
    ~FibreStacks();

    // Lays out `fibre` on a new stack that starts in `entry`.
    void create(Fibre& fibre, FibreEntry entry);
    // Can the process have memory for so many stacks, in all of its OS threads?
    static bool room_for(std::size_t stacks);
    // Is `address` in a guard page, below or above one of these stacks?
    bool in_guard_page(const void* address) const;
    // All of the stacks lie in [begin, end); both null before the first is laid out.
    const char* begin() const { return memory_; }
    const char* end() const { return memory_ == nullptr ? nullptr : memory_ + kStacks * stride(); }

  private:
    static constexpr std::size_t kCacheLine = 64;
    // So many consecutive bytes all lie in different sets of an L1 cache.
    static constexpr std::size_t kCacheWay = 4096;
    // About as many cache lines as a waiting thread touches; odd, so that all sets are used.
    static constexpr std::size_t kLinesApart = 5;
#ifdef CUDA_ON_CPU_ASAN
    static constexpr std::size_t kStackSize = 256 << 10;
#else
    static constexpr std::size_t kStackSize = 64 << 10;
#endif
    // A stack, and the guard page below it.
    static std::size_t stride() {
        return round_up_to_pages(kStackSize) + page_size();
    }
    static constexpr std::size_t kStacks = 1024 + 1;  // one per thread of the largest block, plus one
    static constexpr std::size_t kStacksAtOnce = 32;

    char* memory_ = nullptr;
    std::size_t used_ = 0;
    std::size_t writable_ = 0;
};

// Does each stack's guard page use two of the memory mappings that the system allows?
bool guards_take_mappings();

}  // namespace cuda_on_cpu
