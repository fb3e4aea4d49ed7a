// Loads and stores of words that other threads of the system read and write meanwhile: what must hold
// on every GPU and on the stand-in, through common/device/ptx.cuh.
#include <gtest/gtest.h>

#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/test/device_test.hpp"

namespace {

using namespace course;

class SystemWordsTest : public DeviceTest {};

// Block 0 sends, block 1 receives. Each thread has a place of its own, and both of its words have
// the number of the round. The receiver answers at another place before the next round.
__global__ void send_and_receive(ulonglong2* there, ulonglong2* back, unsigned rounds, unsigned* wrong) {
    ulonglong2* const mine = there + threadIdx.x;
    ulonglong2* const answer = back + threadIdx.x;
    for (unsigned long long round = 1; round <= rounds; ++round) {
        const ulonglong2 words = {round << 32 | threadIdx.x, round << 32 | (threadIdx.x + 1000)};
        ulonglong2 got;
        if (blockIdx.x == 0) ptx::st_relaxed_sys_v2_b64(mine, words);
        do {
            got = ptx::ld_relaxed_sys_v2_b64(blockIdx.x == 0 ? answer : mine);
        } while (got.x >> 32 != round || got.y >> 32 != round);
        if (got.x != words.x || got.y != words.y) atomicAdd(wrong, 1u);
        if (blockIdx.x == 1) ptx::st_relaxed_sys_v2_b64(answer, got);
    }
}

TEST_F(SystemWordsTest, BothWordsArrive) {
    constexpr unsigned kThreads = 64;
    DeviceBuffer<ulonglong2> there(std::vector<ulonglong2>(kThreads, ulonglong2{0, 0}));
    DeviceBuffer<ulonglong2> back(std::vector<ulonglong2>(kThreads, ulonglong2{0, 0}));
    DeviceBuffer<unsigned> wrong(std::vector<unsigned>(1, 0));
    send_and_receive<<<2, kThreads>>>(there.data(), back.data(), 20, wrong.data());
    CUDA_CHECK_LAUNCH();
    EXPECT_EQ(wrong.to_host()[0], 0u);
    const std::vector<ulonglong2> last = back.to_host();
    for (unsigned t = 0; t < kThreads; ++t) {
        EXPECT_EQ(last[t].x, 20ull << 32 | t);
        EXPECT_EQ(last[t].y, 20ull << 32 | (t + 1000));
    }
}

// A word that no thread stores stays as it is.
__global__ void store_in_the_middle(ulonglong2* out) {
    ptx::st_relaxed_sys_v2_b64(out + 1, {1, 2});
}

TEST_F(SystemWordsTest, NothingBesideIsStored) {
    DeviceBuffer<ulonglong2> out(std::vector<ulonglong2>(3, ulonglong2{7, 8}));
    store_in_the_middle<<<1, 1>>>(out.data());
    CUDA_CHECK_LAUNCH();
    const std::vector<ulonglong2> got = out.to_host();
    const std::vector<unsigned long long> words = {got[0].x, got[0].y, got[1].x,
                                                   got[1].y, got[2].x, got[2].y};
    EXPECT_EQ(words, (std::vector<unsigned long long>{7, 8, 1, 2, 7, 8}));
}

}  // namespace
