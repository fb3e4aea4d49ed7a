#include "common/bench/host_memory.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "common/check/bytes.hpp"

namespace course {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 26;  // smaller ones are not looked at, which would take time

std::size_t total_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

// What programs can have without that others lose theirs: MemAvailable, in KiB. Allocates nothing through operator new.
std::size_t available_bytes() {
    std::size_t kib = total_bytes() >> 10;
    if (std::FILE* const file = std::fopen("/proc/meminfo", "r"); file != nullptr) {
        std::array<char, 128> line;
        while (std::fgets(line.data(), line.size(), file) != nullptr) {
            if (std::sscanf(line.data(), "MemAvailable: %zu kB", &kib) == 1) break;
        }
        std::fclose(file);
    }
    return kib << 10;
}

}  // namespace

OutOfHostMemory::OutOfHostMemory(std::size_t bytes) {
    std::snprintf(text_.data(), text_.size(), "an array of %s; this machine has %s, of which %s are free",
                  text_of_bytes(bytes).c_str(), text_of_bytes(total_bytes()).c_str(),
                  text_of_bytes(available_bytes()).c_str());
}

}  // namespace course

void* operator new(std::size_t bytes) {
    const bool fits = bytes < course::kLarge || bytes < course::available_bytes();
    void* const memory = fits ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
    if (memory == nullptr) throw course::OutOfHostMemory(bytes);
    return memory;
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
