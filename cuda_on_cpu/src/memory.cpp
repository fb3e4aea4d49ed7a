#include "memory.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>

#include "cuda_on_cpu/spin_hint.h"
#include "cuda_on_cpu/variable_gaps.h"
#include "current_device.hpp"
#include "environment.hpp"
#include "exit_report.hpp"
#include "fault.hpp"
#include "fibre.hpp"
#include "managed_watch.hpp"
#include "module_ranges.hpp"
#include "observer.hpp"
#include "pages.hpp"
#include "peer_guard.hpp"

#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) (static_cast<void>(begin), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) (static_cast<void>(begin), static_cast<void>(size))
#endif

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Less than a GPU's 256, because the end should be as close to the guard page as possible.
constexpr std::size_t kAlignment = 16;
constexpr std::size_t kLarge = std::size_t{1}
                               << 26;      // from this size on, checks whether the system has enough memory
constexpr std::size_t kQuarantine = 1024;  // freed allocations whose addresses are not reused yet

std::mutex mutex;
// Indexed by the first byte of the mapping. Created on first use and never destroyed, because
// static objects of the program may allocate before main() and free after it.
using Allocations = std::map<const char*, Allocation>;
Allocations& allocations() {
    static auto& all = *new Allocations;
    return all;
}
// Those of the quarantine: apart, as each launch passes all others several times.
Allocations& freed_allocations() {
    static auto& all = *new Allocations;
    return all;
}
std::deque<const char*>& freed_order() {
    static auto& all = *new std::deque<const char*>;
    return all;
}
std::size_t live_bytes = 0;
std::array<std::size_t, kMostDevices> live_of_device{};  // device memory of each device, if there are several
std::size_t capacity = 0;                                // of all allocations together; 0: not known yet
std::atomic<std::size_t> allocation_count{0};

Allocation* find_among(Allocations& all, const char* byte) {
    auto after = all.upper_bound(byte);
    if (after == all.begin()) return nullptr;
    Allocation& candidate = std::prev(after)->second;
    const char* begin = std::prev(after)->first;
    const std::size_t size = candidate.mapping != nullptr ? candidate.mapping_size : candidate.size;
    return byte < begin + size || (candidate.mapping == nullptr && byte == begin + size) ? &candidate
                                                                                         : nullptr;
}

Allocation* find_locked(const volatile void* address) {
    const char* byte = const_cast<const char*>(static_cast<const volatile char*>(address));
    Allocation* const found = find_among(allocations(), byte);
    return found != nullptr ? found : find_among(freed_allocations(), byte);
}

// --- Device memory that is closed to the host ----------------------------------------------------

using Clock = std::chrono::steady_clock;

struct Closing {
    unsigned works = 0;      // objects of DeviceWork
    std::size_t closed = 0;  // allocations
    Clock::time_point began{};
    Clock::duration spent{};
};
constinit Closing closing;
std::atomic<bool> never_closed{false};

// MPI and what it loads may be made for CUDA: then the host's library takes device pointers.
bool has_mpi() {
    static const bool has = dlsym(RTLD_DEFAULT, "MPI_Init") != nullptr;
    return has;
}

bool may_close(Clock::time_point now) {
    constexpr Clock::duration kAlways = std::chrono::milliseconds(20);
    constexpr int kPart = 32;
    if (closing.began == Clock::time_point{}) closing.began = now;
    return !never_closed && environment().closes_device_memory && !has_mpi() &&
           closing.spent < kAlways + (now - closing.began) / kPart;
}

void set_closed(Allocation& allocation, bool closed) {
    if (allocation.closed == closed) return;
    const std::size_t size = allocation.mapping_size - 2 * guard_size();
    if (mprotect(allocation.mapping + guard_size(), size, closed ? PROT_NONE : PROT_READ | PROT_WRITE) != 0)
        return;
    allocation.closed = closed;
    closing.closed += closed ? 1 : -1;
}

void open_all() {
    if (closing.closed == 0) return;
    const Clock::time_point begin = Clock::now();
    for (auto& [mapping, allocation] : allocations())
        set_closed(allocation, false);
    closing.spent += Clock::now() - begin;
}

void close_if_of_device(Allocation& allocation) {
    if (allocation.type == cudaMemoryTypeDevice && allocation.mapping != nullptr && !allocation.for_host)
        set_closed(allocation, true);
}

void forget_oldest_freed() {
    const auto found = freed_allocations().find(freed_order().front());
    freed_order().pop_front();
    munmap(found->second.mapping, found->second.mapping_size);
    freed_allocations().erase(found);
}

std::size_t machine_bytes() {
    static const std::size_t bytes =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
    return bytes;
}

// The memory that the system can provide without taking it from other programs: MemAvailable.
std::size_t available_bytes() {
    std::size_t kib = machine_bytes() >> 10;
    if (std::FILE* const file = std::fopen("/proc/meminfo", "r"); file != nullptr) {
        char line[128];
        while (std::fgets(line, sizeof line, file) != nullptr) {
            if (std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1) break;
        }
        std::fclose(file);
    }
    return kib << 10;
}

std::size_t free_bytes_locked() {
    if (capacity == 0) capacity = available_bytes();
    const std::size_t free = capacity - std::min(capacity, live_bytes);
    if (!several_devices()) return free;
    const std::size_t share = capacity / static_cast<std::size_t>(device_count());
    const std::size_t used = live_of_device[static_cast<std::size_t>(current_device())];
    return std::min(free, share - std::min(share, used));
}

bool has_room_for(std::size_t size) {
    const std::scoped_lock lock(mutex);
    const bool fits = size <= free_bytes_locked();
    if (fits && size < kLarge) return true;
    const std::size_t available = available_bytes();
    const bool is_there = size <= available;
    if (several_devices()) {  // each device has its share, regardless of what the system could provide
        if (!is_there) capacity = live_bytes + available;
        return fits && is_there;
    }
    if (fits != is_there) capacity = live_bytes + available;
    return is_there;
}

// Reports allocations that still exist when the process ends. On a GPU the driver would free them.
void tell_leaks() {
    const std::scoped_lock lock(mutex);
    std::size_t count = 0;
    for (const auto& [mapping, allocation] : allocations())
        count += allocation.mapping != nullptr;
    if (count == 0) return;
    std::fprintf(stderr,
                 "cuda_on_cpu: %zu allocation%s never freed, %zu bytes in all: is a cudaFree missing?\n",
                 count, count == 1 ? " was" : "s were", live_bytes);
}

// The image into which this file is linked, together with the kernels and their __device__
// variables: the program, or a shared library that it has loaded.
struct Image {
    ImageRange whole;
    ImageRange writable;
    ImageRange code;
};

Image find_image() {
    Image image;
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* result) {
            constexpr ImageRange kNone{~std::uintptr_t{0}, 0};
            Image candidate{kNone, kNone, kNone};
            for (int i = 0; i < module->dlpi_phnum; ++i) {
                const auto& segment = module->dlpi_phdr[i];
                if (segment.p_type != PT_LOAD) continue;
                const std::uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
                const auto include = [&](ImageRange& range) {
                    range.begin = std::min(range.begin, begin);
                    range.end = std::max(range.end, begin + segment.p_memsz);
                };
                include(candidate.whole);
                if ((segment.p_flags & PF_W) != 0) include(candidate.writable);
                if ((segment.p_flags & PF_X) != 0) include(candidate.code);
            }
            const auto here = reinterpret_cast<std::uintptr_t>(&mutex);
            if (here < candidate.whole.begin || here >= candidate.whole.end) return 0;
            *static_cast<Image*>(result) = candidate;
            return 1;
        },
        &image);
    return image;
}

const Image& program_image() {
    static const Image image = find_image();
    return image;
}

bool in_program_image(const volatile void* pointer, std::size_t size) {
    const ImageRange image = program_image().whole;
    const auto first = reinterpret_cast<std::uintptr_t>(pointer);
    if (in_module(pointer, size)) return true;
    return first >= image.begin && first <= image.end && size <= image.end - first;
}

#ifndef CUDA_ON_CPU_ASAN
// The first byte of the slack before or behind `allocation` that differs from the canary; null if
// none does.
const char* damaged_byte(const Allocation& allocation) {
    const char* pages = allocation.mapping + guard_size();
    const char* pages_end = allocation.mapping + allocation.mapping_size - guard_size();
    const auto damaged = [&allocation](const char* from, const char* to) -> const char* {
        for (; from < to; ++from) {
            const bool is_high = reinterpret_cast<std::uintptr_t>(from) % 2 != 0;  // as fill() has it
            const auto expected =
                static_cast<unsigned char>(is_high ? allocation.canary >> 8 : allocation.canary);
            if (static_cast<unsigned char>(*from) != expected) return from;
        }
        return nullptr;
    };
    const char* before =
        damaged(std::max<const char*>(pages, allocation.begin - kAlignment), allocation.begin);
    return before != nullptr ? before : damaged(allocation.begin + allocation.size, pages_end);
}

std::string damage_report(const Allocation& allocation) {
    if (allocation.mapping == nullptr) return {};
    const char* byte = damaged_byte(allocation);
    if (byte == nullptr) return {};
    const bool before = byte < allocation.begin;
    const auto distance = before ? allocation.begin - byte : byte - (allocation.begin + allocation.size);
    char position[64] = "the first byte";
    if (distance > 0) std::snprintf(position, sizeof position, "%td byte(s)", distance);
    char text[160];
    std::snprintf(text, sizeof text, "wrote %s %s the %zu-byte allocation at %p", position,
                  before ? "before" : "past the end of", allocation.size,
                  static_cast<void*>(allocation.begin));
    return text;
}
#else
// The sanitizer reports the access itself.
std::string damage_report(const Allocation&) {
    return {};
}
#endif

}  // namespace

void fill(void* memory, std::size_t size, std::uint16_t pattern) {
    auto* bytes = static_cast<unsigned char*>(memory);
    if (size > 0 && reinterpret_cast<std::uintptr_t>(bytes) % 2 != 0) {
        *bytes++ = static_cast<unsigned char>(pattern >> 8);
        --size;
    }
    const std::uint64_t word = pattern * std::uint64_t{0x0001000100010001};
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word)
        std::memcpy(bytes, &word, sizeof word);
    std::memcpy(bytes, &word, size);
}

namespace {

// A system limits how many mappings a program has (Linux: vm.max_map_count). These are given back
// when it gives no more, so that the program can report that, and end.
class SpareMappings {
  public:
    SpareMappings() {
        void* const memory = mmap(nullptr, kPages * page_size(), PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return;
        first_ = static_cast<char*>(memory);
        for (std::size_t i = 1; i < kPages; i += 2)  // or they would be one mapping
            mprotect(first_ + i * page_size(), page_size(), PROT_READ);
    }
    void give_back() {
        if (char* const first = first_.exchange(nullptr); first != nullptr)
            munmap(first, kPages * page_size());
    }

  private:
    static constexpr std::size_t kPages = 64;
    std::atomic<char*> first_{nullptr};
};

}  // namespace

void* allocate(std::size_t size, cudaMemoryType type) {
    order_may_show = true;  // in a kernel, addresses depend on the order of the threads
    static const bool tells_leaks = environment().leaks && std::atexit(tell_leaks) == 0;
    static_cast<void>(tells_leaks);
    const std::size_t pages = round_up_to_pages(size);
    if (pages < size || !has_room_for(size)) return nullptr;
    static SpareMappings& spare = *new SpareMappings;
    const std::size_t mapping_size = pages + 2 * guard_size();
    void* mapping =
        mmap(nullptr, mapping_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        spare.give_back();
        return nullptr;
    }
    // Its guard pages stay mappings of their own while the memory between them is closed.
    madvise(mapping, mapping_size, MADV_DONTDUMP);
    char* first_page = static_cast<char*>(mapping) + guard_size();
    madvise(first_page, pages, MADV_DODUMP);
    if (mprotect(first_page, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, mapping_size);
        spare.give_back();
        return nullptr;
    }
    // All of it is filled below. For 64 MB that took 33 ms with one page fault per small page, and
    // takes 9 ms with huge pages.
    if (pages >= kHugePage) madvise(first_page, pages, MADV_HUGEPAGE);

    char* begin = first_page + pages - round_up(size, kAlignment);
    const std::uint16_t canary = kCanaries[allocation_count++ % std::size(kCanaries)];
    fill(first_page, static_cast<std::size_t>(begin - first_page), canary);
    fill(begin, size, kDevicePoison);
    fill(begin + size, round_up(size, kAlignment) - size, canary);
    ASAN_POISON_MEMORY_REGION(first_page, begin - first_page);
    ASAN_POISON_MEMORY_REGION(begin + size, round_up(size, kAlignment) - size);
    prepare_thread_for_faults();  // the host may access it out of range before the first kernel does

    const std::scoped_lock lock(mutex);
    Allocation& made = allocations()[static_cast<char*>(mapping)] = Allocation{
        begin, size, type, false, static_cast<char*>(mapping), mapping_size, canary, -1, current_device()};
    if (const Clock::time_point now = Clock::now(); closing.works == 0 && may_close(now)) {
        close_if_of_device(made);
        closing.spent += Clock::now() - now;
    }
    live_bytes += size;
    if (type == cudaMemoryTypeDevice) live_of_device[static_cast<std::size_t>(current_device())] += size;
    if (memory_observer != nullptr)
        memory_observer->memory_allocated(begin, size, type != cudaMemoryTypeDevice);
    return begin;
}

constinit std::atomic<void (*)(const void*)> pool_memory_released{nullptr};

cudaError_t release(void* pointer, cudaMemoryType type, const char* function) {
    const std::scoped_lock lock(mutex);
    Allocation* allocation = find_locked(pointer);
    const bool managed_as_device =
        allocation != nullptr && type == cudaMemoryTypeDevice && allocation->type == cudaMemoryTypeManaged;
    if (allocation == nullptr || allocation->mapping == nullptr || allocation->begin != pointer ||
        allocation->freed || (allocation->type != type && !managed_as_device)) {
        const char* why = allocation == nullptr || allocation->mapping == nullptr
                              ? "was not allocated by CUDA"
                          : allocation->freed            ? "has been freed already"
                          : allocation->begin != pointer ? "is not the start of its allocation"
                                                         : "is memory of another kind";
        std::fprintf(stderr, "cuda_on_cpu: %s(%p): this pointer %s\n", function, pointer, why);
        return cudaErrorInvalidValue;
    }
    set_closed(*allocation, false);
    forget_guarded(allocation->mapping);
    forget_changed_pages(allocation->mapping, allocation->mapping_size);
    if (const std::string damage = damage_report(*allocation); !damage.empty()) {
        std::fprintf(stderr, "cuda_on_cpu: %s(%p): the program %s\n", function, pointer, damage.c_str());
    }
    if (allocation->type == cudaMemoryTypeManaged) look_at_counter(allocation->begin, allocation->size);
    // The addresses stay reserved for a while, so that a use after free faults at the line that
    // does it.
    ASAN_UNPOISON_MEMORY_REGION(allocation->mapping + guard_size(),
                                allocation->mapping_size - 2 * guard_size());
    if (allocation->file >= 0) {
        close(allocation->file);  // other processes that have mapped it keep it
        allocation->file = -1;
        mmap(allocation->mapping, allocation->mapping_size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    madvise(allocation->mapping, allocation->mapping_size, MADV_DONTNEED);
    madvise(allocation->mapping, allocation->mapping_size, MADV_DONTDUMP);
    mprotect(allocation->mapping, allocation->mapping_size, PROT_NONE);
    allocation->freed = true;
    live_bytes -= allocation->size;
    if (allocation->type == cudaMemoryTypeDevice)
        live_of_device[static_cast<std::size_t>(allocation->device)] -= allocation->size;
    if (const auto tell_pool = pool_memory_released.load()) tell_pool(allocation->begin);
    if (memory_observer != nullptr) memory_observer->memory_freed(allocation->begin);
    freed_allocations().insert(allocations().extract(allocation->mapping));
    freed_order().push_back(allocation->mapping);
    if (freed_order().size() > kQuarantine) forget_oldest_freed();
    return cudaSuccess;
}

int share_allocation(char* begin) {
    const std::scoped_lock lock(mutex);
    Allocation* const allocation = find_locked(begin);
    if (allocation == nullptr || allocation->freed || allocation->mapping == nullptr) return -1;
    if (allocation->file >= 0) return allocation->file;
    set_closed(*allocation, false);
    forget_guarded(allocation->mapping);
    forget_changed_pages(allocation->mapping, allocation->mapping_size);
    char* const pages = allocation->mapping + guard_size();
    const std::size_t size = allocation->mapping_size - 2 * guard_size();
    const int file = memfd_create("cuda_on_cpu", MFD_CLOEXEC);
    if (file < 0) return -1;
    for (std::size_t done = 0; done < size;) {
        const ssize_t written = write(file, pages + done, size - done);
        if (written <= 0) {
            close(file);
            return -1;
        }
        done += static_cast<std::size_t>(written);
    }
    if (mmap(pages, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        close(file);
        return -1;
    }
    return allocation->file = file;
}

void add_range(char* begin, std::size_t size, cudaMemoryType type) {
    const std::scoped_lock lock(mutex);
    allocations()[begin] = Allocation{begin, size, type, false, nullptr, 0, 0, -1, current_device()};
}

void remove_range(char* begin) {
    const std::scoped_lock lock(mutex);
    allocations().erase(begin);
}

bool take_bytes(std::size_t size) {
    if (!has_room_for(size)) return false;
    const std::scoped_lock lock(mutex);
    live_bytes += size;
    return true;
}

void give_back_bytes(std::size_t size) {
    const std::scoped_lock lock(mutex);
    live_bytes -= size;
}

void register_host(void* pointer, std::size_t size) {
    add_range(static_cast<char*>(pointer), size, cudaMemoryTypeHost);
}

bool unregister_host(void* pointer) {
    const std::scoped_lock lock(mutex);
    const auto found = allocations().find(static_cast<char*>(pointer));
    if (found == allocations().end() || found->second.mapping != nullptr ||
        found->second.type != cudaMemoryTypeHost)
        return false;
    allocations().erase(found);
    return true;
}

std::optional<Allocation> find_allocation(const volatile void* address) {
    const std::scoped_lock lock(mutex);
    const Allocation* found = find_locked(address);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

bool device_accessible(const volatile void* pointer, std::size_t size) {
    if (in_program_image(pointer, size)) return true;
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed) return false;
    const char* first = const_cast<const char*>(static_cast<const volatile char*>(pointer));
    return first >= allocation->begin &&
           size <= static_cast<std::size_t>(allocation->begin + allocation->size - first) &&
           first <= allocation->begin + allocation->size;
}

bool plain_host_memory(const volatile void* pointer) {
    if (pointer == nullptr || in_program_image(pointer, 1) || find_allocation(pointer)) return false;
    auto* page =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(pointer) / page_size() * page_size());
    unsigned char resident = 0;
    return mincore(page, page_size(), &resident) == 0;  // fails where nothing is mapped
}

namespace {

std::string describe_in(const Allocation* allocation, const volatile void* address) {
    if (allocation == nullptr) return {};
    const char* byte = const_cast<const char*>(static_cast<const volatile char*>(address));
    const char* end_of_allocation = allocation->begin + allocation->size;
    char position[64];
    if (byte < allocation->begin) {
        std::snprintf(position, sizeof position, "%td byte(s) before", allocation->begin - byte);
    } else if (byte == end_of_allocation) {
        std::snprintf(position, sizeof position, "at the first byte past the end of");
    } else if (byte > end_of_allocation) {
        std::snprintf(position, sizeof position, "%td byte(s) past the end of", byte - end_of_allocation);
    } else {
        std::snprintf(position, sizeof position, "at byte %td of", byte - allocation->begin);
    }
    char of_device[32] = "";
    if (several_devices() && allocation->type == cudaMemoryTypeDevice)
        std::snprintf(of_device, sizeof of_device, " of device %d", allocation->device);
    char text[240];
    std::snprintf(text, sizeof text, "%s the %zu-byte allocation at %p%s%s", position, allocation->size,
                  static_cast<void*>(allocation->begin), of_device,
                  allocation->freed ? ", which has been freed" : "");
    return text;
}

}  // namespace

std::string describe_address(const volatile void* address) {
    const auto allocation = find_allocation(address);
    return describe_in(allocation ? &*allocation : nullptr, address);
}

std::string try_to_describe_address(const volatile void* address) {
    const std::unique_lock lock(mutex, std::try_to_lock);
    return lock.owns_lock() ? describe_in(find_locked(address), address) : std::string{};
}

bool is_closed(const volatile void* address) {
    const std::unique_lock lock(mutex, std::try_to_lock);
    const Allocation* const allocation = lock.owns_lock() ? find_locked(address) : nullptr;
    return allocation != nullptr && allocation->closed;
}

std::string describe_wild_index(const volatile void* address) {
    struct Pattern {
        std::uint16_t word;
        const char* origin;
    };
    constexpr Pattern kPatterns[] = {{kDevicePoison, "memory that nothing has written"},
                                     {kSharedPoison, "shared memory that nothing has written"},
                                     {kSharedCanary, "what lies outside a __shared__ variable"},
                                     {kVariableCanary, "what lies outside a __device__ variable"},
                                     {kCanaries[0], "what lies outside an allocation"},
                                     {kCanaries[1], "what lies outside an allocation"},
                                     {kCanaries[2], "what lies outside an allocation"}};
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock lock(mutex);
    for (const int size : {4, 8, 16, 2, 1}) {  // the most likely size first, because several may fit
        for (const Pattern& pattern : kPatterns) {
            const std::uint32_t word = std::uint32_t{pattern.word} << 16 | pattern.word;
            for (const std::int64_t index :
                 {std::int64_t{static_cast<std::int32_t>(word)}, std::int64_t{word}}) {
                for (const auto& [mapping, allocation] : allocations()) {
                    if (reinterpret_cast<std::uintptr_t>(allocation.begin) + index * size != wanted) continue;
                    char text[250];
                    std::snprintf(text, sizeof text,
                                  "element %lld of the %zu-byte allocation at %p: that index comes from %s",
                                  static_cast<long long>(index), allocation.size,
                                  static_cast<void*>(allocation.begin), pattern.origin);
                    return text;
                }
            }
        }
    }
    return {};
}

std::string damaged_allocation() {
    const std::scoped_lock lock(mutex);
    for (auto& [mapping, allocation] : allocations()) {
        std::string report = damage_report(allocation);
        if (report.empty()) continue;
        // Reported once: the canary is restored.
        char* slack_end = allocation.mapping + allocation.mapping_size - guard_size();
        char* slack_begin = std::max(allocation.mapping + guard_size(), allocation.begin - kAlignment);
        fill(slack_begin, static_cast<std::size_t>(allocation.begin - slack_begin), allocation.canary);
        char* behind = allocation.begin + allocation.size;
        fill(behind, static_cast<std::size_t>(slack_end - behind), allocation.canary);
        return report;
    }
    return {};
}

bool in_program(const void* address) {
    return in_program_image(address, 1);
}

ImageRange writable_image() {
    return program_image().writable;
}

bool in_program_code(const void* address) {
    const ImageRange code = program_image().code;
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return place >= code.begin && place < code.end;
}

std::vector<Allocation> live_allocations() {
    const std::scoped_lock lock(mutex);
    std::vector<Allocation> live;
    for (const auto& [mapping, allocation] : allocations())
        live.push_back(allocation);
    return live;
}

std::size_t free_bytes() {
    const std::scoped_lock lock(mutex);
    return free_bytes_locked();
}

std::size_t total_bytes() {
    return machine_bytes() / static_cast<std::size_t>(device_count());
}

bool may_close_memory() {
    const std::scoped_lock lock(mutex);
    return may_close(Clock::now());
}

DeviceWork::DeviceWork() {
    const std::scoped_lock lock(mutex);
    if (++closing.works > 1) return;
    open_all();
    open_changed_pages();
}

DeviceWork::~DeviceWork() {
    const std::scoped_lock lock(mutex);
    if (--closing.works > 0 || allocations().empty()) return;
    const Clock::time_point begin = Clock::now();
    if (!may_close(begin)) return;
    for (auto& [mapping, allocation] : allocations())
        close_if_of_device(allocation);
    close_changed_pages();
    closing.spent += Clock::now() - begin;
}

void open_to_host() {
    if (never_closed.exchange(true)) return;
    const std::scoped_lock lock(mutex);
    open_all();
}

void open_to_host(const void* begin) {
    const std::scoped_lock lock(mutex);
    Allocation* const allocation = find_locked(begin);
    if (allocation == nullptr || allocation->freed) return;
    allocation->for_host = true;
    set_closed(*allocation, false);
}

bool may_access(int device, const Allocation& allocation) {
    if (allocation.type != cudaMemoryTypeDevice || allocation.device == device) return true;
    if (allocation.of_pool) return (allocation.readers >> device & 1) != 0;
    return has_peer_access(device, allocation.device);
}

void set_readers(const void* begin, std::uint64_t readers) {
    const std::scoped_lock lock(mutex);
    Allocation* const allocation = find_locked(begin);
    if (allocation == nullptr || allocation->freed) return;
    allocation->of_pool = true;
    allocation->readers = readers;
}

void for_each_live_allocation(const std::function<void(const Allocation&)>& function) {
    const std::scoped_lock lock(mutex);
    for (const auto& [mapping, allocation] : allocations())
        function(allocation);
}

}  // namespace cuda_on_cpu
