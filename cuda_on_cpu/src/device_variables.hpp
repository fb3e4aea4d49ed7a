// The state of a device that its kernels access: its copies of `__device__` variables, and its
// memory.
#pragma once

#include <cstddef>
#include <map>

namespace cuda_on_cpu {

// For the lifetime of this object, which is that of a kernel, its device's `__device__` variables
// are in place, and the memory of other devices that the kernel may not access is protected. The
// protection is off while kernels of several devices run, because the process has only one page
// table. With a single device this class does nothing.
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

// The `__device__` variables that are known, with their sizes: arrays, objects of classes, and
// those that the host has copied.
std::map<char*, std::size_t> known_variables();

// The host accesses the variable by its name, so from now on each device has its own copy. `reads`:
// the host reads what kernels have stored in it.
void note_variable(const char* function, void* variable, std::size_t size, bool reads);
// Copies from or to the current device's copy of a known variable. False: neither side is such a
// variable.
bool copy_variable(void* to, const void* from, std::size_t bytes);

}  // namespace cuda_on_cpu
