// The machine that this program runs on. The course distinguishes backends only through these
// functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace course {

// True when CUDA threads run on the CPU: results are valid, but times do not apply to a GPU.
constexpr bool is_cpu_stand_in() {
#ifdef CUDA_ON_CPU
    return true;
#else
    return false;
#endif
}

struct Machine {
    std::string device;  // "NVIDIA H200"
    std::string slug;    // "h200": the directory of its measurements
    std::string driver;  // "580.65.06"; the supported CUDA version if the driver version is not available
    std::string cuda;    // version of the runtime, "13.0"
};

// The current device. Throws CudaError when there is none.
Machine this_machine();

// Size of the last cache before device memory.
std::size_t l2_cache_bytes();

// A device's name as a directory: "NVIDIA H200" -> "h200", "NVIDIA GeForce RTX 4090" ->
// "geforce-rtx-4090".
std::string machine_slug(std::string_view device_name);

// Version number in the text of /proc/driver/nvidia/version, or "" if there is none.
std::string driver_version(std::string_view proc_text);

}  // namespace course
