// Illegal memory accesses of kernels: turned from SIGSEGV into what a GPU does, an error code, with
// a line that says which thread did what where.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

inline constexpr const char* kDamagedStack =
    "this thread's stack is damaged: is a local array written past its end?";

// Gives this OS thread a stack for signal handlers. Cheap when done already.
void prepare_thread_for_faults();

// In the handler of another signal, while a kernel runs on this OS thread: when the handler
// returns, `function` is called on a stack of its own, in the place of the kernel. False: that is
// not possible here.
bool leave_kernel(void* signal_context, void (*function)());

// backtrace() for a signal handler that interrupts a kernel anywhere. A fibre may be on its way
// from one stack to another, and what unwinding finds there is no stack: then there are no frames.
int frames_in_handler(void** frames, int most);

// While it lives this OS thread copies `size` bytes for a call of the host. If an address of the
// two ranges cannot be accessed, a line says which, before the program ends as it would without us.
class CopyWatch {
  public:
    CopyWatch(const void* to, const void* from, std::size_t size);
    ~CopyWatch();
    CopyWatch(const CopyWatch&) = delete;
    CopyWatch& operator=(const CopyWatch&) = delete;
};

}  // namespace cuda_on_cpu
