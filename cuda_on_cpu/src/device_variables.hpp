// What kernels find of their device while they run: its copies of `__device__` variables, and its
// memory.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// While a kernel runs: its device's `__device__` variables are in their place, and memory of other
// devices that it may not access is out of reach. The latter only while no kernel of another device
// runs: memory has one protection for the whole process. Does nothing where there is one device.
class KernelOnDevice {
  public:
    KernelOnDevice(int device, bool may_poll);
    ~KernelOnDevice();
    KernelOnDevice(const KernelOnDevice&) = delete;
    KernelOnDevice& operator=(const KernelOnDevice&) = delete;

  private:
    int device_;  // -1: there is only one
    bool polls_;
};

// The host uses the variable by its name, so from now on each device has a copy of its own.
// `reads`: what kernels have left in it.
void note_variable(const char* function, void* variable, std::size_t size, bool reads);
// A copy from or to the current device's copy of a known variable. False: neither side is one.
bool copy_variable(void* to, const void* from, std::size_t bytes);

}  // namespace cuda_on_cpu
