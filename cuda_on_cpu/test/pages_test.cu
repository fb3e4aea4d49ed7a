// A system with larger pages than this one has, as some arm64 have. The functions of the system
// that know of pages are replaced here, for all of the program: they take and give what such a
// system takes and gives. CUDA_ON_CPU_TEST_PAGE is the size, 65536 without it.
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "../src/pages.hpp"
#include "reports.cuh"

namespace {

std::size_t page() {
    const char* const set = std::getenv("CUDA_ON_CPU_TEST_PAGE");
    return set == nullptr ? 65536 : std::strtoul(set, nullptr, 10);
}
std::size_t rounded_up(std::size_t bytes) {
    return (bytes + page() - 1) / page() * page();
}
bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % page() == 0;
}
int refuse() {
    errno = EINVAL;
    return -1;
}
void* map(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

}  // namespace

extern "C" long sysconf(int name) noexcept {
    static const auto system = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
    if (name == _SC_PAGESIZE) return static_cast<long>(page());
    if (name == _SC_PHYS_PAGES) return system(name) / static_cast<long>(page() / 4096);
    return system(name);
}

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
    if (static_cast<std::size_t>(offset) % page() != 0 ||
        ((flags & MAP_FIXED) != 0 && !is_aligned(address))) {
        refuse();
        return MAP_FAILED;
    }
    bytes = rounded_up(bytes);
    if ((flags & MAP_FIXED) != 0) return map(address, bytes, protection, flags, file, offset);
    void* const around =
        map(nullptr, bytes + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (around == MAP_FAILED) return around;
    const auto begin = reinterpret_cast<std::uintptr_t>(around);
    const std::size_t before = rounded_up(begin) - begin;
    char* const aligned = static_cast<char*>(around) + before;
    if (before > 0) syscall(SYS_munmap, around, before);
    if (before < page()) syscall(SYS_munmap, aligned + bytes, page() - before);
    return map(aligned, bytes, protection, flags | MAP_FIXED, file, offset);
}

extern "C" int munmap(void* address, std::size_t bytes) noexcept {
    if (!is_aligned(address)) return refuse();
    return static_cast<int>(syscall(SYS_munmap, address, rounded_up(bytes)));
}

extern "C" int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    if (!is_aligned(address)) return refuse();
    return static_cast<int>(syscall(SYS_mprotect, address, rounded_up(bytes), protection));
}

extern "C" int madvise(void* address, std::size_t bytes, int advice) noexcept {
    if (!is_aligned(address)) return refuse();
    return static_cast<int>(syscall(SYS_madvise, address, rounded_up(bytes), advice));
}

extern "C" int mincore(void* address, std::size_t bytes, unsigned char* resident) noexcept {
    if (!is_aligned(address)) return refuse();
    for (std::size_t at = 0; at < rounded_up(bytes);
         at += 4096) {  // a page of this system may be mapped alone
        if (syscall(SYS_mincore, static_cast<char*>(address) + at, 4096, resident) == 0) return 0;
    }
    return -1;
}

namespace {

__global__ void read_at(const int* from, long long index, int* out) {
    *out = from[index];
}
__global__ void reverse_in_dynamic_memory(int* values) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void write_behind_dynamic_memory(int index) {
    extern __shared__ int shared[];
    shared[index] = 1;
}
// Each thread has 40 KB on its stack while it waits.
__global__ void wait_with_a_deep_stack(int* out) {
    int local[10000];
    for (int i = 0; i < 10000; ++i)
        local[i] = i * static_cast<int>(threadIdx.x);
    __syncthreads();
    int sum = 0;
    for (const int each : local)
        sum += each == 0 ? 0 : 1;
    out[threadIdx.x] = sum;
}
__global__ void recurse(int* out, int depth) {
    struct Recursion {
        static __device__ int run(int depth) {  // NOLINT(misc-no-recursion)
            volatile int local[64];
            local[depth % 64] = depth;
            return depth == 0 ? 0 : run(depth - 1) + local[depth % 64];
        }
    };
    __syncthreads();
    *out = Recursion::run(depth);
}

TEST(LargePages, AreWhatSizesAreRoundedUpTo) {
    using cuda_on_cpu::round_up_to_pages;
    EXPECT_EQ(cuda_on_cpu::page_size(), page());
    EXPECT_EQ(round_up_to_pages(0), 0U);
    EXPECT_EQ(round_up_to_pages(1), page());
    EXPECT_EQ(round_up_to_pages(page()), page());
    EXPECT_EQ(round_up_to_pages(page() + 1), 2 * page());
}

TEST(LargePages, HoldMemoryBetweenGuardPages) {
    for (const std::size_t size :
         {std::size_t{4}, std::size_t{4096}, std::size_t{70000}, std::size_t{3} << 20}) {
        DeviceVector<int> values(size / sizeof(int));
        DeviceVector<int> out(1);
        const auto count = static_cast<long long>(size / sizeof(int));
        read_at<<<1, 1>>>(values.data(), count - 1, out.data());
        EXPECT_EQ(out.to_host()[0], 0);
    }
    const std::string behind = report_of(cudaErrorIllegalAddress, [] {
        int* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
        read_at<<<1, 1>>>(memory, 4096 / 4 + static_cast<long long>(page()) / 4 - 8, memory);
    });
    EXPECT_TRUE(mentions(behind, {"read_at", "illegal access"}));
}

TEST(LargePages, HoldDynamicSharedMemory) {
    std::vector<int> values(1024);
    for (int i = 0; i < 1024; ++i)
        values[static_cast<std::size_t>(i)] = i;
    DeviceVector<int> device(values);
    reverse_in_dynamic_memory<<<1, 1024, 1024 * sizeof(int)>>>(device.data());
    const std::vector<int> reversed = device.to_host();
    for (int i = 0; i < 1024; ++i)
        ASSERT_EQ(reversed[static_cast<std::size_t>(i)], 1023 - i);
    const std::string behind =
        report_of(cudaErrorIllegalAddress, [] { write_behind_dynamic_memory<<<1, 1, 1024>>>(256); });
    EXPECT_TRUE(mentions(behind, {"outside the block's dynamic shared memory"}));
    const std::string far_behind = report_of(cudaErrorIllegalAddress, [] {
        write_behind_dynamic_memory<<<1, 1, 1024>>>(256 + static_cast<int>(page()) / 4 - 8);
    });
    EXPECT_TRUE(mentions(far_behind, {"illegal access"}));
}

TEST(LargePages, HoldTheStacksOfThreads) {
    DeviceVector<int> out(1024);
    wait_with_a_deep_stack<<<1, 1024>>>(out.data());
    std::vector<int> expected(1024, 9999);
    expected[0] = 0;
    EXPECT_EQ(out.to_host(), expected);
    const std::string report =
        report_of(cudaErrorHardwareStackError, [&] { recurse<<<1, 2>>>(out.data(), 1 << 20); });
    EXPECT_TRUE(mentions(report, {"this thread's stack is full"}));
}

TEST(LargePages, ReserveAddresses) {
    void* pool = nullptr;
    ASSERT_EQ(cudaMallocAsync(&pool, 100, nullptr), cudaSuccess);
    ASSERT_EQ(cudaFreeAsync(pool, nullptr), cudaSuccess);
    int* managed = nullptr;
    ASSERT_EQ(cudaMallocManaged(&managed, 100), cudaSuccess);
    managed[24] = 5;
    DeviceVector<int> out(1);
    read_at<<<1, 1>>>(managed, 24, out.data());
    EXPECT_EQ(out.to_host()[0], 5);
    int on_the_host = 0;
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [&] { read_at<<<1, 1>>>(&on_the_host, 0, out.data()); }),
                 {"is the host pointer"}));
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

}  // namespace
