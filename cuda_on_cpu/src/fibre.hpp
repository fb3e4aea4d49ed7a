// A fibre: a stack of its own and the point at which its execution was left. Boost.Context does the
// switch.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

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

namespace cuda_on_cpu {

struct Fibre {
    boost::context::detail::fcontext_t context = nullptr;  // where to go on; meaningful while suspended
    void* stack_bottom = nullptr;                          // lowest usable address
    std::size_t stack_size = 0;
};

// Leaves `from` and goes on in `to`. Returns when a fibre switches back to `from`.
inline void switch_fibre(Fibre& from, Fibre& to) {
    void* fake_stack = nullptr;
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_start_switch_fiber(&fake_stack, to.stack_bottom, to.stack_size);
#endif
    const auto arrival = boost::context::detail::jump_fcontext(to.context, &from);
    static_cast<Fibre*>(arrival.data)->context =
        arrival.fctx;  // the fibre that switched here is suspended now
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
    static_cast<void>(fake_stack);
#endif
}

// The first thing a new fibre does: what the second half of switch_fibre does for an old one.
inline void arrive_in_new_fibre(boost::context::detail::transfer_t arrival) {
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
}

// Memory for fibres. The stride is not a power of two: equal frames of different threads would
// share cache sets.
class FibreStacks {
  public:
    FibreStacks() = default;
    FibreStacks(const FibreStacks&) = delete;
    FibreStacks& operator=(const FibreStacks&) = delete;
    ~FibreStacks();

    // Lays out `fibre` on a new stack that starts in `entry`.
    void create(Fibre& fibre, void (*entry)(boost::context::detail::transfer_t));
    // May the process have memory for so many, in all of its OS threads?
    static bool room_for(std::size_t stacks);
    // Is `address` in a guard page, below or above one of these stacks?
    bool in_guard_page(const void* address) const;
    // All of the stacks lie in [begin, end); both null before the first is laid out.
    const char* begin() const { return memory_; }
    const char* end() const { return memory_ == nullptr ? nullptr : memory_ + kStacks * kStride; }

  private:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kCacheLine = 64;
    static constexpr std::size_t kLinesApart =
        5;  // about what a waiting thread touches; odd, so that all sets are used
#ifdef CUDA_ON_CPU_ASAN
    static constexpr std::size_t kPagesPerStack = 65;
#else
    static constexpr std::size_t kPagesPerStack = 17;
#endif
    static constexpr std::size_t kStride = kPagesPerStack * kPage;
    static constexpr std::size_t kStacks = 1024 + 1;  // as many as a block has threads, and one
    static constexpr std::size_t kStacksAtOnce = 32;

    char* memory_ = nullptr;
    std::size_t used_ = 0;
    std::size_t writable_ = 0;
};

// Does each stack's guard page take two of the mappings that the system allows?
bool guards_take_mappings();

}  // namespace cuda_on_cpu
