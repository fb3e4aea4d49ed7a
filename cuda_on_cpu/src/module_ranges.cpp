#include "module_ranges.hpp"

#include <link.h>
#include <unistd.h>

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
    const void* dynamic;
    int file;
};
std::mutex mutex;
// Never destroyed, because destructors of static objects may launch kernels.
std::vector<Range>& module_ranges() {
    static auto& all = *new std::vector<Range>;
    return all;
}
std::atomic<bool> has_modules = false;

}  // namespace

void note_module(const void* dynamic, int file) {
    Range noted{0, 0, dynamic, file};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* wanted) {
            Range& module = *static_cast<Range*>(wanted);
            bool is_it = false;
            Range range{~std::uintptr_t{0}, 0, module.dynamic, module.file};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& segment = info->dlpi_phdr[i];
                const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
                if (segment.p_type == PT_DYNAMIC) is_it = reinterpret_cast<void*>(begin) == module.dynamic;
                if (segment.p_type != PT_LOAD) continue;
                range.begin = std::min(range.begin, begin);
                range.end = std::max(range.end, begin + segment.p_memsz);
            }
            if (!is_it) return 0;
            const std::scoped_lock lock(mutex);
            module_ranges().push_back(range);
            has_modules = true;
            return 1;
        },
        &noted);
}

void close_file_of_module(const void* dynamic) {
    const std::scoped_lock lock(mutex);
    for (Range& range : module_ranges()) {
        if (range.dynamic != dynamic || range.file < 0) continue;
        close(range.file);
        range.file = -1;
    }
}

int file_of_module(const void* address) {
    if (!has_modules) return -1;
    const auto byte = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock lock(mutex);
    const auto found = std::ranges::find_if(
        module_ranges(), [=](const Range& range) { return byte >= range.begin && byte < range.end; });
    return found == module_ranges().end() ? -1 : found->file;
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
