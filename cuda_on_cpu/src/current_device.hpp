// How many devices there are (CUDA_ON_CPU_DEVICES), and which one is current.
#pragma once

#include "environment.hpp"

namespace cuda_on_cpu {

int device_count();
inline bool several_devices() {
    return device_count() > 1;
}

// The device of this OS thread: the one that cudaSetDevice() has set or, while the OS thread runs a
// kernel or work of a stream, the device of that work.
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

}  // namespace cuda_on_cpu
