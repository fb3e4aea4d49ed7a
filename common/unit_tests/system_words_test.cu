// Loads and stores of 16 bytes that other threads access concurrently, through
// common/device/ptx.cuh: requirements that hold on every GPU and on the stand-in.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/test/device_test.hpp"

namespace {

using namespace course;

class SystemWordsTest : public DeviceTest {};

// Half of the blocks store pairs at one address. The other blocks load from it, and the two halves
// must belong together. On a CPU, a store in two halves would be detected only occasionally.
__global__ void store_and_load(ulonglong2* place, unsigned times, unsigned* wrong) {
    for (unsigned long long number = threadIdx.x; number < times; ++number) {
        if (blockIdx.x % 2 == 0) {
            ptx::st_relaxed_sys_b128(place, ulonglong2{number, ~number});
        } else {
            const ulonglong2 got = ptx::ld_relaxed_sys_b128(place);
            if (got.y != ~got.x) atomicAdd(wrong, 1u);
        }
    }
}

TEST_F(SystemWordsTest, AreStoredAndLoadedAsAWhole) {
    const std::vector<ulonglong2> before(1, ulonglong2{0, ~0ull});
    const std::vector<unsigned> none(1, 0);
    DeviceBuffer<ulonglong2> place{std::span<const ulonglong2>(before)};
    DeviceBuffer<unsigned> wrong{std::span<const unsigned>(none)};
    const unsigned times = is_cpu_stand_in() ? 10000 : 100000;
    store_and_load<<<4, 32>>>(place.data(), times, wrong.data());
    CUDA_CHECK_LAUNCH();
    EXPECT_EQ(wrong.to_host()[0], 0u);
}

// Words that no thread stores to must not change.
__global__ void store_in_the_middle(ulonglong2* out) {
    ptx::st_relaxed_sys_b128(out + 1, ulonglong2{1, 2});
}

TEST_F(SystemWordsTest, NothingBesideIsStored) {
    const std::vector<ulonglong2> before(3, ulonglong2{7, 8});
    DeviceBuffer<ulonglong2> out{std::span<const ulonglong2>(before)};
    store_in_the_middle<<<1, 1>>>(out.data());
    CUDA_CHECK_LAUNCH();
    const std::vector<ulonglong2> got = out.to_host();
    const std::vector<unsigned long long> words = {got[0].x, got[0].y, got[1].x,
                                                   got[1].y, got[2].x, got[2].y};
    EXPECT_EQ(words, (std::vector<unsigned long long>{7, 8, 1, 2, 7, 8}));
}

}  // namespace
