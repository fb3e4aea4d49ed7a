// Illegal memory accesses of kernels: turns SIGSEGV into an error code, as on a GPU, and prints
// which thread accessed which address, and where.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

inline constexpr const char* kDamagedStack =
    "this thread's stack is damaged: is a local array written past its end?";

// Gives this OS thread a stack for signal handlers. Cheap when the thread already has one.
void prepare_thread_for_faults();

// For the handler of another signal, while a kernel runs on this OS thread: when the handler
// returns, `function` runs on its own stack in place of the kernel. False: not possible here.
bool leave_kernel(void* signal_context, void (*function)());

// backtrace() for a signal handler that interrupts a kernel anywhere. Returns no frames if the
// signal interrupts a switch between two fibres, because no valid stack can be unwound there.
int frames_in_handler(void** frames, int most);

// Exists while this OS thread copies `size` bytes for a call of the host. If an address of the two
// ranges cannot be accessed, the handler prints it before the program ends as it would without the
// emulator.
class CopyWatch {
  public:
    CopyWatch(const void* to, const void* from, std::size_t size);
    ~CopyWatch();
    CopyWatch(const CopyWatch&) = delete;
    CopyWatch& operator=(const CopyWatch&) = delete;
};

}  // namespace cuda_on_cpu
