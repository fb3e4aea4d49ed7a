#include "common/bench/host_memory.hpp"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>

#include "common/bench/machine_memory.hpp"
#include "common/check/bytes.hpp"

namespace course {
namespace {

// Smaller arrays are not checked, because reading /proc/meminfo takes time.
constexpr std::size_t kLarge = std::size_t{1} << 26;

}  // namespace

OutOfHostMemory::OutOfHostMemory(std::size_t bytes) {
    std::snprintf(text_.data(), text_.size(), "an array of %s; this machine has %s, of which %s are free",
                  text_of_bytes(bytes).c_str(), text_of_bytes(machine_memory()).c_str(),
                  text_of_bytes(available_machine_memory()).c_str());
}

}  // namespace course

namespace {

bool counts() noexcept {
    return course::host_memory_count.counts.load(std::memory_order_relaxed);
}

}  // namespace

void* operator new(std::size_t bytes) {
    const bool fits = bytes < course::kLarge || bytes < course::available_machine_memory();
    void* const memory = fits ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
    if (memory == nullptr) throw course::OutOfHostMemory(bytes);
    if (counts()) course::host_memory_count.add(static_cast<std::ptrdiff_t>(bytes));
    return memory;
}

void operator delete(void* memory) noexcept {
    if (counts()) course::host_memory_count.add(-static_cast<std::ptrdiff_t>(malloc_usable_size(memory)));
    std::free(memory);
}

void operator delete(void* memory, std::size_t bytes) noexcept {
    if (counts()) course::host_memory_count.add(-static_cast<std::ptrdiff_t>(bytes));
    std::free(memory);
}
