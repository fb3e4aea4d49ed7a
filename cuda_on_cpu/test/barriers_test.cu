// Barriers of a block and of a warp: which threads wait, and what they read afterwards.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

constexpr unsigned kFullWarp = 0xffffffffu;

__device__ unsigned thread_number() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// ---- __syncthreads ------------------------------------------------------------------------------

__global__ void reverse(int* values) {
    __shared__ int shared[1024];
    const unsigned n = blockDim.x * blockDim.y * blockDim.z;
    const unsigned t = thread_number();
    int* block = values + blockIdx.x * n;
    shared[t] = block[t];
    __syncthreads();
    block[t] = shared[n - 1 - t];
}

class BlockShapes : public testing::TestWithParam<dim3> {};

TEST_P(BlockShapes, EverybodySeesWhatWasWrittenBeforeTheBarrier) {
    const dim3 block = GetParam();
    const unsigned n = block.x * block.y * block.z;
    constexpr unsigned kBlocks = 7;
    std::vector<int> numbers(kBlocks * n);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<int>(i);
    DeviceVector<int> values(numbers);
    reverse<<<kBlocks, block>>>(values.data());
    for (unsigned b = 0; b < kBlocks; ++b)
        std::reverse(numbers.begin() + b * n, numbers.begin() + (b + 1) * n);
    EXPECT_EQ(values.to_host(), numbers);
}

INSTANTIATE_TEST_SUITE_P(Blocks, BlockShapes,
                         testing::Values(dim3(1), dim3(2), dim3(31), dim3(32), dim3(33), dim3(64), dim3(1000),
                                         dim3(1024), dim3(8, 4), dim3(5, 7, 3), dim3(1, 1, 64),
                                         dim3(32, 32)));

// Each round every thread reads its neighbour's value of the round before.
__global__ void shift_many_times(int* values, int rounds) {
    __shared__ int ring[2][256];
    const unsigned t = threadIdx.x;
    ring[0][t] = static_cast<int>(t);
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        ring[(round + 1) % 2][t] = ring[round % 2][(t + 1) % blockDim.x];
        __syncthreads();
    }
    values[t] = ring[rounds % 2][t];
}

TEST(Syncthreads, StandsInALoop) {
    for (const unsigned threads : {1u, 32u, 100u, 256u}) {
        DeviceVector<int> values(threads);
        constexpr int kRounds = 333;
        shift_many_times<<<1, threads>>>(values.data(), kRounds);
        const std::vector<int> got = values.to_host();
        for (unsigned t = 0; t < threads; ++t)
            EXPECT_EQ(got[t], static_cast<int>((t + kRounds) % threads)) << threads;
    }
}

__device__ void publish(int* slot, int value) {
    __syncthreads();
    if (threadIdx.x == 0) *slot = value;
    __syncthreads();
}

// Whole blocks go different ways, through different barriers; some warps have more to do than
// others.
__global__ void branch_by_block(int* out) {
    __shared__ int slot;
    if (blockIdx.x % 2 == 0) {
        publish(&slot, 10);
    } else {
        for (unsigned i = 0; i < blockIdx.x; ++i)
            publish(&slot, static_cast<int>(i));
    }
    int extra = 0;
    if (threadIdx.x >= 32) {
        for (unsigned i = 0; i < threadIdx.x; ++i)
            extra += static_cast<int>(i) * slot;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = slot + (extra == -1 ? 1 : 0);
}

TEST(Syncthreads, StandsInBranchesThatAWholeBlockTakes) {
    constexpr unsigned kBlocks = 6;
    constexpr unsigned kThreads = 96;
    DeviceVector<int> out(kBlocks * kThreads);
    branch_by_block<<<kBlocks, kThreads>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (unsigned i = 0; i < got.size(); ++i) {
        const unsigned block = i / kThreads;
        EXPECT_EQ(got[i], block % 2 == 0 ? 10 : static_cast<int>(block) - 1) << i;
    }
}

// ---- Threads that have left ---------------------------------------------------------------------

__global__ void leave_early(int* out, unsigned stay_first, unsigned stay_end) {
    __shared__ int shared[1024];
    const unsigned t = threadIdx.x;
    if (t < stay_first || t >= stay_end) return;
    for (int round = 0; round < 3; ++round) {
        shared[t] = static_cast<int>(t) + round;
        __syncthreads();
        const unsigned next = t + 1 < stay_end ? t + 1 : stay_first;
        out[t] = shared[next];
        __syncthreads();
    }
}

TEST(Syncthreads, DoesNotWaitForThreadsThatHaveEnded) {
    struct Case {
        unsigned threads, first, end;
    };
    for (const Case c : {Case{64, 0, 32}, Case{64, 32, 64}, Case{64, 0, 33}, Case{64, 5, 6},
                         Case{1024, 100, 1000}, Case{33, 0, 32}, Case{128, 3, 125}}) {
        DeviceVector<int> out(std::vector<int>(c.threads, -1));
        leave_early<<<1, c.threads>>>(out.data(), c.first, c.end);
        const std::vector<int> got = out.to_host();
        for (unsigned t = 0; t < c.threads; ++t) {
            const int next = static_cast<int>(t + 1 < c.end ? t + 1 : c.first);
            EXPECT_EQ(got[t], t < c.first || t >= c.end ? -1 : next + 2) << c.threads << " " << t;
        }
    }
}

// Every round one more warp leaves.
__global__ void leave_one_warp_a_round(int* rounds_seen) {
    __shared__ int round_of_leader;
    const unsigned warp = threadIdx.x / 32;
    for (unsigned round = 0;; ++round) {
        if (threadIdx.x == blockDim.x - 1)
            round_of_leader = static_cast<int>(round);  // the last warp leaves last
        __syncthreads();
        rounds_seen[threadIdx.x] += round_of_leader == static_cast<int>(round);
        if (warp == round) return;
        __syncthreads();
    }
}

TEST(Syncthreads, WaitsForThoseWhoAreLeft) {
    DeviceVector<int> rounds(8 * 32);
    leave_one_warp_a_round<<<1, 8 * 32>>>(rounds.data());
    const std::vector<int> got = rounds.to_host();
    for (unsigned t = 0; t < got.size(); ++t)
        EXPECT_EQ(got[t], static_cast<int>(t / 32) + 1) << t;
}

// ---- Barriers that count ------------------------------------------------------------------------

struct Verdict {
    int count, all, any;
};

__global__ void vote_in_block(const int* predicates, Verdict* verdicts, int rounds) {
    const unsigned n = blockDim.x;
    for (int round = 0; round < rounds; ++round) {
        const int mine = predicates[round * n + threadIdx.x];
        verdicts[round * n + threadIdx.x] = {__syncthreads_count(mine), __syncthreads_and(mine),
                                             __syncthreads_or(mine)};
    }
}

TEST(VotingBarriers, AgreeWithTheHost) {
    std::mt19937_64 generator(kSeed);
    for (const unsigned n : {1u, 2u, 31u, 32u, 33u, 97u, 1024u}) {
        constexpr int kRounds = 16;
        std::vector<int> predicates(kRounds * n);
        for (int round = 0; round < kRounds; ++round) {
            // All false, all true, one true, one false, then anything; true is any number but zero.
            for (unsigned t = 0; t < n; ++t) {
                const bool chosen = t == generator() % n;
                int& p = predicates[round * n + t];
                switch (round) {
                    case 0:
                        p = 0;
                        break;
                    case 1:
                        p = -5;
                        break;
                    case 2:
                        p = t == n / 2 ? 7 : 0;
                        break;
                    case 3:
                        p = t == n / 2 ? 0 : 1 << 30;
                        break;
                    default:
                        p = chosen ? 1 : static_cast<int>(generator() % 3) - 1;
                        break;
                }
            }
        }
        DeviceVector<int> in(predicates);
        DeviceVector<Verdict> out(kRounds * n);
        vote_in_block<<<1, n>>>(in.data(), out.data(), kRounds);
        const std::vector<Verdict> got = out.to_host();
        for (int round = 0; round < kRounds; ++round) {
            const auto first = predicates.begin() + round * n;
            const auto count = std::count_if(first, first + n, [](int p) { return p != 0; });
            for (unsigned t = 0; t < n; ++t) {
                const Verdict& verdict = got[round * n + t];
                ASSERT_EQ(verdict.count, count)
                    << "seed " << kSeed << ", " << n << " threads, round " << round;
                ASSERT_EQ(verdict.all != 0, count == n)
                    << "seed " << kSeed << ", " << n << " threads, round " << round;
                ASSERT_EQ(verdict.any != 0, count > 0)
                    << "seed " << kSeed << ", " << n << " threads, round " << round;
            }
        }
    }
}

__global__ void vote_after_some_left(Verdict* verdicts, unsigned stay) {
    if (threadIdx.x >= stay) return;
    verdicts[threadIdx.x] = {__syncthreads_count(threadIdx.x % 2), __syncthreads_and(threadIdx.x < stay),
                             __syncthreads_or(threadIdx.x >= stay)};
}

TEST(VotingBarriers, LeaveOutThreadsThatHaveEnded) {
    for (const unsigned stay : {1u, 20u, 32u, 50u, 64u}) {
        DeviceVector<Verdict> out(64);
        vote_after_some_left<<<1, 64>>>(out.data(), stay);
        const std::vector<Verdict> got = out.to_host();
        for (unsigned t = 0; t < stay; ++t) {
            EXPECT_EQ(got[t].count, static_cast<int>(stay / 2));
            EXPECT_NE(got[t].all, 0);
            EXPECT_EQ(got[t].any, 0);
        }
    }
}

// ---- __syncwarp ---------------------------------------------------------------------------------

__global__ void reduce_with_syncwarp(const int* in, int* sums) {
    __shared__ int shared[256];
    volatile int* mine = shared + threadIdx.x / 32 * 32;
    const unsigned lane = threadIdx.x % 32;
    mine[lane] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncwarp();
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        const int other = lane < offset ? mine[lane + offset] : 0;
        __syncwarp();
        if (lane < offset) mine[lane] = mine[lane] + other;
        __syncwarp();
    }
    if (lane == 0) sums[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = mine[0];
}

TEST(Syncwarp, OrdersTheLanesOfAWarp) {
    constexpr unsigned kThreads = 4 * 256;
    std::vector<int> numbers(kThreads);
    const auto words = random_words(kThreads);
    for (unsigned i = 0; i < kThreads; ++i)
        numbers[i] = static_cast<int>(words[i] % 1000) - 500;
    DeviceVector<int> in(numbers);
    DeviceVector<int> sums(kThreads / 32);
    reduce_with_syncwarp<<<4, 256>>>(in.data(), sums.data());
    const std::vector<int> got = sums.to_host();
    for (unsigned w = 0; w < kThreads / 32; ++w) {
        int expected = 0;
        for (unsigned lane = 0; lane < 32; ++lane)
            expected += numbers[w * 32 + lane];
        EXPECT_EQ(got[w], expected) << "seed " << kSeed << ", warp " << w;
    }
}

// The lanes of a warp split into groups by `group_of`, each with a mask of its own; in each group
// the values go round through shared memory, a different number of times for each group.
__global__ void rotate_in_groups(const unsigned* group_of, int* out) {
    __shared__ int shared[32];
    const unsigned lane = threadIdx.x;
    const unsigned group = group_of[lane];
    unsigned mask = 0;
    for (unsigned other = 0; other < 32; ++other) {
        if (group_of[other] == group) mask |= 1u << other;
    }
    unsigned next = (lane + 1) % 32;
    while ((mask >> next & 1u) == 0)
        next = (next + 1) % 32;
    int value = static_cast<int>(lane);
    const auto rotate = [&](unsigned times) {
        for (unsigned i = 0; i < times; ++i) {
            shared[lane] = value;
            __syncwarp(mask);
            value = shared[next];
            __syncwarp(mask);
        }
    };
    if (group == 0) {
        rotate(1);
    } else if (group == 1) {
        rotate(2);
    } else {
        rotate(group + 1);
    }
    out[lane] = value;
}

TEST(Syncwarp, WaitsForTheLanesOfItsMaskOnly) {
    std::mt19937_64 generator(kSeed);
    for (int trial = 0; trial < 50; ++trial) {
        const unsigned groups = 1 + trial % 5;
        std::vector<unsigned> group_of(32);
        for (unsigned& g : group_of)
            g = static_cast<unsigned>(generator() % groups);
        DeviceVector<unsigned> in(group_of);
        DeviceVector<int> out(32);
        rotate_in_groups<<<1, 32>>>(in.data(), out.data());
        std::vector<int> expected(32);
        for (unsigned lane = 0; lane < 32; ++lane) {
            unsigned from = lane;
            for (unsigned i = 0; i < group_of[lane] + 1; ++i) {
                do
                    from = (from + 1) % 32;
                while (group_of[from] != group_of[lane]);
            }
            expected[lane] = static_cast<int>(from);
        }
        EXPECT_EQ(out.to_host(), expected) << "seed " << kSeed << ", trial " << trial;
    }
}

// Lanes that have ended are no longer named.
__global__ void syncwarp_after_some_left(int* out) {
    __shared__ volatile int shared[32];
    const unsigned lane = threadIdx.x;
    if (lane % 3 == 0) return;
    constexpr unsigned kLeft = ~0x49249249u;
    shared[lane] = static_cast<int>(lane);
    __syncwarp(kLeft);
    out[lane] = shared[lane % 3 == 1 ? lane : lane - 1];
}

TEST(Syncwarp, NamesTheLanesThatAreLeft) {
    DeviceVector<int> out(32);
    syncwarp_after_some_left<<<1, 32>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (int lane = 0; lane < 32; ++lane)
        EXPECT_EQ(got[lane], lane % 3 == 0 ? 0 : lane / 3 * 3 + 1) << lane;
}

// ---- __activemask -------------------------------------------------------------------------------

__global__ void look_around(unsigned* top, unsigned* branch, unsigned* after) {
    const unsigned t = threadIdx.x;
    top[t] = __activemask();
    if (t % 32 % 4 == 1) {
        branch[t] = __activemask();
    } else {
        branch[t] = 0;
    }
    __syncwarp(t < 64 ? kFullWarp : 0xffu);
    after[t] = __activemask();
}

// What the guide promises: the calling lane is in the mask, lanes that do not execute the call are
// not.
TEST(Activemask, HoldsTheCallerAndNobodyFromElsewhere) {
    constexpr unsigned kThreads = 72;  // two warps, and eight lanes
    DeviceVector<unsigned> top(kThreads);
    DeviceVector<unsigned> branch(kThreads);
    DeviceVector<unsigned> after(kThreads);
    look_around<<<1, kThreads>>>(top.data(), branch.data(), after.data());
    const auto tops = top.to_host();
    const auto branches = branch.to_host();
    const auto afters = after.to_host();
    for (unsigned t = 0; t < kThreads; ++t) {
        const unsigned self = 1u << t % 32;
        const unsigned exist = t < 64 ? kFullWarp : 0xffu;
        EXPECT_EQ(tops[t], exist) << t;  // nothing has divided them yet
        EXPECT_NE(afters[t] & self, 0u) << t;
        EXPECT_EQ(afters[t] & ~exist, 0u) << t;
        if (t % 32 % 4 == 1) {
            EXPECT_NE(branches[t] & self, 0u) << t;
            EXPECT_EQ(branches[t] & ~(0x22222222u & exist), 0u) << t;
        }
    }
}

}  // namespace
