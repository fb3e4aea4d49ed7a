// The memory of the machine that a program runs on. These functions allocate nothing through
// operator new, because operator new calls them.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>

namespace course {

inline std::size_t machine_memory() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

// The memory that can be allocated without swapping. /proc/meminfo reports it as MemAvailable, in
// KiB.
inline std::size_t available_machine_memory() {
    std::size_t kib = machine_memory() >> 10;
    if (std::FILE* const file = std::fopen("/proc/meminfo", "r"); file != nullptr) {
        std::array<char, 128> line;
        while (std::fgets(line.data(), line.size(), file) != nullptr) {
            if (std::sscanf(line.data(), "MemAvailable: %zu kB", &kib) == 1) break;
        }
        std::fclose(file);
    }
    return kib << 10;
}

// The bytes that operator new allocates and operator delete frees while `counts` is true, in
// programs that are linked with host_memory.cpp.
struct HostMemoryCount {
    std::atomic<bool> counts{false};
    std::atomic<std::ptrdiff_t> now{0};
    std::atomic<std::ptrdiff_t> most{0};

    void add(std::ptrdiff_t bytes) {
        const std::ptrdiff_t sum = now += bytes;
        std::ptrdiff_t before = most;
        while (sum > before && !most.compare_exchange_weak(before, sum)) {
        }
    }
};
inline constinit HostMemoryCount host_memory_count;

}  // namespace course
