// Several devices (CUDA_ON_CPU_DEVICES): which one is current, which may access whose memory, and
// the copies of `__device__` variables that each of them has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver_types.h"

namespace cuda_on_cpu {

inline constexpr int kMostDevices = 64;

int device_count();
inline bool several_devices() {
    return device_count() > 1;
}

// The device of this OS thread: what cudaSetDevice() has set; while work of a stream or a kernel
// runs, the device that this belongs to.
inline constinit thread_local int device_of_os_thread = 0;
inline int current_device() {
    return device_of_os_thread;
}

class DeviceScope {
  public:
    explicit DeviceScope(int device) : before_(device_of_os_thread) { device_of_os_thread = device; }
    ~DeviceScope() { device_of_os_thread = before_; }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

  private:
    int before_;
};

// cudaErrorInvalidDevice and a sentence, unless there is such a device.
cudaError_t expect_device(const char* function, int device);

// --- Peer access ---------------------------------------------------------------------------------

// May kernels of `device` access what cudaMalloc gives on `owner`?
bool has_peer_access(int device, int owner);
// From the current device to `peer`.
cudaError_t enable_peer_access(const char* function, int peer);
cudaError_t disable_peer_access(const char* function, int peer);

// --- Kernels of several devices ------------------------------------------------------------------

// While a kernel runs: its device's `__device__` variables are in their place, and memory of other
// devices that it may not access is out of reach. The latter only while no kernel of another device
// runs: memory has one protection for the whole process. Does nothing where there is one device.
class KernelOnDevice {
  public:
    KernelOnDevice(int device, bool polls);
    ~KernelOnDevice();
    KernelOnDevice(const KernelOnDevice&) = delete;
    KernelOnDevice& operator=(const KernelOnDevice&) = delete;

  private:
    int device_;  // -1: there is only one
    bool polls_;
};

// A segmentation fault, for the signal handler. `device` is that of the kernel; -1: it was none.
enum class GuardFault {
    none,      // something else is wrong
    retry,     // the access is right: the memory can be reached now
    forbidden  // the memory is another device's
};
GuardFault guard_fault(const void* address, int device);
// The allocation's pages will be something else. With the lock of memory.cpp.
void forget_guarded(const char* mapping);
// All memory can be reached until the next kernel begins.
void lift_guard();

// --- __device__ variables ------------------------------------------------------------------------

// The host uses the variable by its name, so from now on each device has a copy of its own.
// `reads`: what kernels have left in it.
void note_variable(const char* function, void* variable, std::size_t size, bool reads);
// A copy from or to the current device's copy of a known variable. False: neither side is one.
bool copy_variable(void* to, const void* from, std::size_t bytes);

}  // namespace cuda_on_cpu
