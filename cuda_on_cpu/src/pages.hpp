// Pages of memory. The system sets their size: usually 4 KB, but 16 or 64 KB on some arm64
// machines.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace cuda_on_cpu {

inline std::size_t page_size() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

inline constexpr std::size_t round_up(std::size_t value, std::size_t step) {
    return (value + step - 1) / step * step;
}

inline std::size_t round_up_to_pages(std::size_t bytes) {
    return round_up(bytes, page_size());
}

// Of the inaccessible pages on each side of an allocation. As large as wrong indices often are:
// beyond them lie other allocations, which a kernel could use unnoticed. They take addresses, but
// no memory except for the system's page tables: 4 KB for an allocation.
inline std::size_t guard_size() {
    return round_up_to_pages(std::size_t{1} << 20);
}

}  // namespace cuda_on_cpu
