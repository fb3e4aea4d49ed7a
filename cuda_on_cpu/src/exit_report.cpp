#include "exit_report.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "cuda_on_cpu/launch.h"
#include "environment.hpp"
#include "host_shadows.hpp"
#include "memory.hpp"
#include "observer.hpp"

namespace cuda_on_cpu {

constinit bool own_program = false;

namespace {

constexpr std::size_t kLooksAtMost = std::size_t{64} << 20;  // bytes, in all copies

std::atomic<bool> launched{false};
std::atomic<bool> failed{false};
std::atomic<bool> illegal_access{false};
std::atomic<const char*> poisoned_by{nullptr};
std::atomic<bool> counted_from_poison{false};
std::atomic<bool> virtual_functions{false};
std::atomic<std::size_t> looked_at{0};
std::mutex mutex;
OrderOf order_shows_of = OrderOf::threads;
// A kernel; never destroyed, because destructors may launch kernels.
const std::string* order_shows_in = nullptr;
const std::string* host_pointer_in = nullptr;  // "argument a of kernel k"
pid_t process = 0;                             // a child of fork() reports nothing
bool inspected = false;

constexpr const char* kWhereToLook =
    " An inspection finds races and reads of memory that nothing wrote, with their lines: compile with "
    "--inspect, or in a checkout of the course run `./course inspect FILE.cu`";

constexpr const char* kZerosAreNotPromised =
    " A GPU's driver mostly hands out zeros, which CUDA does not promise.";

constexpr const char* kVirtualFunctions =
    "the host has handed an object with virtual functions to the device: they are those of the host, and a "
    "GPU stops where a kernel calls one. Make such objects in a kernel, with new.";

// Does the memory still hold nothing but poison?
bool nothing_has_written(const Allocation& memory) {
    for (std::size_t i = 0; i < memory.size; ++i) {
        const bool is_high = reinterpret_cast<std::uintptr_t>(memory.begin + i) % 2 != 0;  // as fill() has it
        const auto poison = static_cast<unsigned char>(is_high ? kDevicePoison >> 8 : kDevicePoison & 0xFF);
        if (static_cast<unsigned char>(memory.begin[i]) != poison) return false;
    }
    return true;
}

// A message about a flag or counter in managed memory that the program has not initialised; "":
// none was found.
std::string unwritten_managed_memory() {
    constexpr std::size_t kFlag = 16;  // bytes; larger memory may hold results that were not needed
    for (const Allocation& memory : live_allocations()) {
        if (memory.type != cudaMemoryTypeManaged || memory.size > kFlag) continue;
        if (nothing_has_written(memory))
            return " Nothing has written to " + std::to_string(memory.size) + " bytes of managed memory." +
                   kZerosAreNotPromised;
    }
    return "";
}

constexpr int kAborted = -1;  // in place of an exit status

void print(const std::string& what) {
    std::fflush(stdout);
    std::fprintf(stderr, "cuda_on_cpu: %s (CUDA_ON_CPU_HINTS=off: no such line)\n", what.c_str());
}

// For on_exit(), which is atexit() with the program's exit status.
void report(int status, void*) {
    if (failed && !illegal_access) return;
    if (inspected) {
        if (virtual_functions) print(kVirtualFunctions);
        return;  // it has told more about all others
    }
    for (const Allocation& memory : live_allocations()) {
        if (memory.type == cudaMemoryTypeManaged) look_at_counter(memory.begin, memory.size);
    }
    std::string kernel, pointer;
    OrderOf order = OrderOf::threads;
    {
        const std::scoped_lock lock(mutex);
        if (order_shows_in != nullptr) kernel = *order_shows_in;
        order = order_shows_of;
        if (host_pointer_in != nullptr) pointer = *host_pointer_in;
    }
    std::string what;
    bool says_where = false;
    if (illegal_access) {
        what =
            "an illegal access is often the end of another mistake: an index that a race has changed, or "
            "that "
            "nothing has written.";
    } else if (!kernel.empty()) {
        what = "the results of kernel " + kernel +
               (order == OrderOf::blocks
                    ? " depend on the order in which its blocks run: does a block read what another one "
                      "writes, or do two write to the same place?"
                    : " depend on the order in which its threads run: is a __syncthreads() or a "
                      "__syncwarp() missing?");
    } else if (!pointer.empty()) {
        what = pointer +
               " has a pointer to host memory, which a GPU cannot reach: if the kernel uses it, copy what it "
               "points to into memory from cudaMalloc.";
        says_where = true;
    } else if (virtual_functions) {
        what = kVirtualFunctions;
        says_where = true;
    } else if (const char* const memory = poisoned_by; memory != nullptr) {
        what = std::string("the host has copied values that come from ") + memory +
               " memory that nothing had written.";
    } else if (counted_from_poison) {
        what = std::string("kernels have counted in managed memory that nothing had written.") +
               kZerosAreNotPromised;
    } else if (status == kAborted) {
        what = "the program has launched kernels and aborts, as assert() does." + unwritten_managed_memory();
    } else if (status != 0) {
        what = "the program has launched kernels and ends with status " + std::to_string(status) + "." +
               unwritten_managed_memory();
    } else {
        return;
    }
    print(what + (says_where ? "" : kWhereToLook));
}

// A program often checks its results with assert(), which aborts without calling the functions
// registered with on_exit().
void report_and_abort(int) {
    signal(SIGABRT, SIG_DFL);
    alarm(5);  // the aborting thread may hold a lock that is needed here
    if (getpid() == process) report(kAborted, nullptr);
    std::abort();
}

// Does nothing if the program handles SIGABRT itself.
void report_when_aborted() {
    struct sigaction before {};
    if (sigaction(SIGABRT, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
        before.sa_handler != SIG_DFL)
        return;
    process = getpid();
    signal(SIGABRT, report_and_abort);
}

// A NaN keeps its mantissa in arithmetic, and the leading part of it in conversions, but not its
// sign. The low word of a double is the poison itself.
constexpr std::uint32_t without_sign(std::uint32_t word) {
    return word & 0x7FFFFFFF;
}
constexpr std::uint32_t twice(std::uint16_t poison) {
    return std::uint32_t{poison} << 16 | poison;
}
// The poison as a double, converted to float.
constexpr std::uint32_t from_double(std::uint16_t poison) {
    const std::uint64_t bits = std::uint64_t{twice(poison)} << 32 | twice(poison);
    return 0x7F800000 | static_cast<std::uint32_t>(bits >> 29 & 0x7FFFFF);
}

// Written so that a compiler can vectorise it. Two shorts may be the poison, too: where it mostly
// stands in one half of a word alone, they are taken for numbers.
bool holds(const void* bytes, std::size_t size, std::uint16_t poison) {
    const std::uint32_t plain = without_sign(twice(poison));
    const std::uint32_t converted = from_double(poison);
    constexpr std::uint32_t kHalf = 0xFFFF;
    std::uint32_t found = 0, pairs = 0, halves = 0;
    for (std::size_t at = 0; at + sizeof plain <= size; at += sizeof plain) {
        std::uint32_t word;
        std::memcpy(&word, static_cast<const char*>(bytes) + at, sizeof word);
        const auto high = static_cast<std::uint32_t>(word >> 16 == poison);
        const auto low = static_cast<std::uint32_t>((word & kHalf) == poison);
        const auto is_small = static_cast<std::uint32_t>(word >> 16 == kHalf);  // -3 as an int
        pairs += high & low;
        halves += (high ^ low) & ~is_small;
        word = without_sign(word);
        found += static_cast<std::uint32_t>(word == plain) | static_cast<std::uint32_t>(word == converted);
    }
    return found > pairs || pairs > halves;
}

// The size without uninitialised memory at the end, because programs copy whole buffers that their
// kernels have only partly filled.
std::size_t without_tail(const void* bytes, std::size_t size) {
    std::size_t written = size / sizeof(std::uint32_t) * sizeof(std::uint32_t);
    for (; written > 0; written -= sizeof(std::uint32_t)) {
        std::uint32_t word;
        std::memcpy(&word, static_cast<const char*>(bytes) + written - sizeof word, sizeof word);
        if (word != twice(kDevicePoison)) break;
    }
    return written;
}

}  // namespace

void note_launch() {
    if (!own_program || !environment().hints || launched.exchange(true)) return;
    inspected = memory_observer != nullptr;
    on_exit(report, nullptr);
    if (!inspected) report_when_aborted();
    for (const Allocation& memory : live_allocations()) {
        if (memory.type == cudaMemoryTypeManaged) look_for_virtual_functions(memory.begin, memory.size);
    }
}

void note_failure(cudaError_t error) {
    failed = true;
    illegal_access = illegal_access || error == cudaErrorIllegalAddress;
}

void note_order_shows(const std::string& kernel, OrderOf of) {
    const std::scoped_lock lock(mutex);
    if (order_shows_in != nullptr) return;
    order_shows_in = new std::string(kernel);
    order_shows_of = of;
}

void note_virtual_functions() {
    virtual_functions = true;
}

void note_host_pointer(const std::string& kernel, const std::string& argument) {
    const std::scoped_lock lock(mutex);
    if (host_pointer_in == nullptr)
        host_pointer_in = new std::string("argument " + argument + " of kernel " + kernel);
}

void look_at_counter(const void* bytes, std::size_t size) {
    constexpr std::size_t kCounter = 16;            // bytes
    constexpr std::uint32_t kMostCounts = 1 << 16;  // a larger difference could be an ordinary number
    if (!launched || inspected || size > kCounter) return;
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= size; at += sizeof(std::uint32_t)) {
        std::uint32_t word;
        std::memcpy(&word, static_cast<const char*>(bytes) + at, sizeof word);
        const std::uint32_t counted = word - (std::uint32_t{kDevicePoison} << 16 | kDevicePoison);
        if (counted > 0 && counted < kMostCounts) counted_from_poison = true;
    }
}

void look_at_copy(const void* bytes, std::size_t size) {
    if (!launched || inspected || poisoned_by != nullptr || looked_at >= kLooksAtMost) return;
    looked_at += size;
    size = std::min(size, kLooksAtMost);
    if (holds(bytes, size, kSharedPoison)) poisoned_by = "shared";
    if (const std::size_t written = without_tail(bytes, size);
        holds(bytes, written > 0 ? written : size, kDevicePoison))
        poisoned_by = "device";
}

}  // namespace cuda_on_cpu
