#include "module_ranges.hpp"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cuda_on_cpu {
namespace {

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
};
std::mutex mutex;
// Never destroyed: destructors of static objects may launch kernels.
std::vector<Range>& module_ranges() {
    static auto& all = *new std::vector<Range>;
    return all;
}
std::atomic<bool> has_modules = false;

}  // namespace

void note_module(const void* dynamic) {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* wanted) {
            bool is_it = false;
            Range range{~std::uintptr_t{0}, 0};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& segment = info->dlpi_phdr[i];
                const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
                if (segment.p_type == PT_DYNAMIC) is_it = reinterpret_cast<void*>(begin) == wanted;
                if (segment.p_type != PT_LOAD) continue;
                range = {std::min(range.begin, begin), std::max(range.end, begin + segment.p_memsz)};
            }
            if (!is_it) return 0;
            const std::scoped_lock lock(mutex);
            module_ranges().push_back(range);
            has_modules = true;
            return 1;
        },
        const_cast<void*>(dynamic));
}

bool in_module(const volatile void* address, std::size_t bytes) {
    if (!has_modules) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock lock(mutex);
    return std::ranges::any_of(module_ranges(), [&](const Range& range) {
        return first >= range.begin && first <= range.end && bytes <= range.end - first;
    });
}

}  // namespace cuda_on_cpu
