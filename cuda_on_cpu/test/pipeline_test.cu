// cuda::barrier, cuda::pipeline and cuda::memcpy_async: what they promise, on a GPU and on the
// stand-in.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

#include "on_device.cuh"

namespace {

namespace cg = cooperative_groups;
using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;

std::vector<int> counted(std::size_t count) {
    std::vector<int> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
        numbers[i] = static_cast<int>(i) + 1;
    return numbers;
}

// ---- cuda::barrier ------------------------------------------------------------------------------

// In each round every thread writes, arrives, and reads what its neighbour has written.
__global__ void pass_on(int* out, int rounds) {
    extern __shared__ int values[];
    __shared__ alignas(8) unsigned char memory[sizeof(BlockBarrier)];
    auto& barrier = reinterpret_cast<BlockBarrier&>(memory);
    const unsigned t = threadIdx.x;
    if (t == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int value = static_cast<int>(t);
    for (int round = 0; round < rounds; ++round) {
        values[t] = value;
        barrier.arrive_and_wait();
        value = values[(t + 1) % blockDim.x] + 1;
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
    }
    out[t] = value;
}
TEST(Barrier, OrdersItsPhases) {
    for (const unsigned threads : {1u, 31u, 32u, 33u, 96u, 1024u}) {
        for (const int rounds : {1, 2, 5}) {
            DeviceVector<int> out(threads);
            pass_on<<<1, threads, threads * sizeof(int)>>>(out.data(), rounds);
            const std::vector<int> got = out.to_host();
            for (unsigned t = 0; t < threads; ++t)
                ASSERT_EQ(got[t], static_cast<int>((t + rounds) % threads) + rounds)
                    << threads << " threads, thread " << t;
        }
    }
}

// Warp 0 writes numbers, one for each phase; the others wait for the phase by its parity, and say
// when they have read.
__global__ void hand_over_by_parity(int* out, int rounds) {
    __shared__ int value;
    __shared__ alignas(8) unsigned char memory[2][sizeof(BlockBarrier)];
    auto& filled = reinterpret_cast<BlockBarrier&>(memory[0]);
    auto& emptied = reinterpret_cast<BlockBarrier&>(memory[1]);
    if (threadIdx.x == 0) {
        init(&filled, 32);
        init(&emptied, blockDim.x - 32);
    }
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        const bool parity = round % 2 != 0;
        if (threadIdx.x < 32) {
            // In round 0 this is the phase before the first, which counts as complete.
            emptied.wait_parity(!parity);
            if (threadIdx.x == 7) value = 10 * round;
            static_cast<void>(filled.arrive());
        } else {
            filled.wait_parity(parity);
            out[round * (blockDim.x - 32) + threadIdx.x - 32] = value;
            static_cast<void>(emptied.arrive());
        }
    }
}
TEST(Barrier, PhasesHaveParities) {
    constexpr int kRounds = 7;
    constexpr unsigned kReaders = 64;
    DeviceVector<int> out(kRounds * kReaders);
    hand_over_by_parity<<<1, 32 + kReaders>>>(out.data(), kRounds);
    const std::vector<int> got = out.to_host();
    for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], 10 * static_cast<int>(i / kReaders)) << i;
}

// One thread after the other drops out; those that are left are not kept waiting.
__global__ void drop_out(int* phases) {
    __shared__ alignas(8) unsigned char memory[sizeof(BlockBarrier)];
    auto& barrier = reinterpret_cast<BlockBarrier&>(memory);
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (unsigned phase = 0; phase < threadIdx.x; ++phase)
        barrier.arrive_and_wait();
    phases[threadIdx.x] = static_cast<int>(threadIdx.x);
    barrier.arrive_and_drop();
}
TEST(Barrier, DoesWithoutThoseWhoDropOut) {
    DeviceVector<int> out(48);
    drop_out<<<1, 48>>>(out.data());
    for (int t = 0; t < 48; ++t)
        EXPECT_EQ(out.to_host()[static_cast<std::size_t>(t)], t);
}

// One arrival for all lanes of a warp.
__global__ void arrive_for_many(int* out) {
    __shared__ int values[64];
    __shared__ alignas(8) unsigned char memory[sizeof(BlockBarrier)];
    auto& barrier = reinterpret_cast<BlockBarrier&>(memory);
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncwarp();
    if (threadIdx.x % 32 == 5) static_cast<void>(barrier.arrive(32));
    barrier.wait_parity(false);
    out[threadIdx.x] = values[63 - threadIdx.x];
}
TEST(Barrier, CountsSeveralArrivalsAtOnce) {
    DeviceVector<int> out(64);
    arrive_for_many<<<1, 64>>>(out.data());
    for (int t = 0; t < 64; ++t)
        EXPECT_EQ(out.to_host()[static_cast<std::size_t>(t)], 63 - t);
}

// ---- cuda::memcpy_async -------------------------------------------------------------------------

template <std::size_t kAlignment>
__global__ void copy_for_a_barrier(int* out, const int* in, unsigned count) {
    extern __shared__ int4 memory_of_block[];
    int* const values = reinterpret_cast<int*>(memory_of_block);
    __shared__ alignas(8) unsigned char memory[sizeof(BlockBarrier)];
    auto& barrier = reinterpret_cast<BlockBarrier&>(memory);
    const cg::thread_block block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, values, in, cuda::aligned_size_t<kAlignment>(count * sizeof(int)), barrier);
    barrier.arrive_and_wait();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        out[i] = values[count - 1 - i];
}
TEST(MemcpyAsync, ByAllThreadsOfABlock) {
    for (const unsigned threads : {1u, 32u, 50u, 256u}) {
        for (const unsigned count : {4u, 36u, 1000u}) {
            DeviceVector<int> in(counted(count));
            for (const auto kernel : {copy_for_a_barrier<4>, copy_for_a_barrier<8>, copy_for_a_barrier<16>}) {
                DeviceVector<int> out(count);
                kernel<<<1, threads, count * sizeof(int)>>>(out.data(), in.data(), count);
                std::vector<int> expected = counted(count);
                std::reverse(expected.begin(), expected.end());
                EXPECT_EQ(out.to_host(), expected) << threads << " threads, " << count << " numbers";
            }
        }
    }
}

// Sizes and addresses that are multiples of nothing.
__global__ void copy_bytes(unsigned char* out, const unsigned char* in, unsigned first, unsigned count) {
    __shared__ unsigned char bytes[64];
    auto pipe = cuda::make_pipeline();
    cuda::memcpy_async(bytes + first, in + first, count, pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    for (unsigned i = 0; i < count; ++i)
        out[i] = bytes[first + i];
}
TEST(MemcpyAsync, AnyBytes) {
    std::vector<unsigned char> numbers(64);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<unsigned char>(7 * i + 1);
    DeviceVector<unsigned char> in(numbers);
    for (const unsigned first : {0u, 1u, 2u, 5u}) {
        for (const unsigned count : {0u, 1u, 3u, 4u, 17u, 48u}) {
            DeviceVector<unsigned char> out(64);
            copy_bytes<<<1, 1>>>(out.data(), in.data(), first, count);
            const std::vector<unsigned char> got = out.to_host();
            EXPECT_TRUE(std::equal(got.begin(), got.begin() + count, numbers.begin() + first))
                << first << ", " << count;
        }
    }
}

// ---- cuda::pipeline -----------------------------------------------------------------------------

// Each thread passes its numbers through its own part of shared memory, kStages - 1 of them ahead.
template <unsigned kStages, bool kPrior>
__global__ void stream_through(int* out, const int* in, unsigned rounds) {
    extern __shared__ int values[];
    auto pipe = cuda::make_pipeline();
    const auto place = [&](unsigned round) { return round * blockDim.x + threadIdx.x; };
    const auto copy = [&](unsigned round) {
        pipe.producer_acquire();
        if (round < rounds) {
            cuda::memcpy_async(&values[place(round % kStages)], &in[place(round)], cuda::aligned_size_t<4>(4),
                               pipe);
        }
        pipe.producer_commit();
    };
    for (unsigned round = 0; round + 1 < kStages; ++round)
        copy(round);
    for (unsigned round = 0; round < rounds; ++round) {
        copy(round + kStages - 1);
        if constexpr (kPrior) {
            cuda::pipeline_consumer_wait_prior<kStages - 1>(pipe);
        } else {
            pipe.consumer_wait();
        }
        out[place(round)] = 2 * values[place(round % kStages)];
        pipe.consumer_release();
    }
}
TEST(ThreadPipeline, DeliversBatchesInOrder) {
    constexpr unsigned kThreads = 48;
    for (const auto kernel : {stream_through<1, false>, stream_through<2, false>, stream_through<4, false>,
                              stream_through<2, true>, stream_through<4, true>}) {
        for (const unsigned rounds : {0u, 1u, 3u, 4u, 5u, 300u}) {  // more than a byte counts
            std::vector<int> expected = counted(rounds * kThreads);
            DeviceVector<int> in(counted(rounds * kThreads + 1));
            DeviceVector<int> out(rounds * kThreads + 1);
            kernel<<<1, kThreads, 4 * kThreads * sizeof(int)>>>(out.data(), in.data(), rounds);
            for (int& number : expected)
                number *= 2;
            expected.push_back(0);
            EXPECT_EQ(out.to_host(), expected) << rounds << " rounds";
        }
    }
}

// The first `copying` threads bring the numbers, the others use them: each reads what another
// thread has copied.
template <unsigned kStages>
__global__ void divide_work(int* out, const int* in, unsigned rounds, unsigned copying) {
    using State = cuda::pipeline_shared_state<cuda::thread_scope_block, kStages>;
    __shared__ alignas(alignof(State)) unsigned char memory[sizeof(State)];
    extern __shared__ int values[];
    auto& state = reinterpret_cast<State&>(memory);
    const bool copies = threadIdx.x < copying;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state,
                                    copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    for (unsigned round = 0; round < rounds; ++round) {
        int* const stage = values + round % kStages * copying;
        if (copies) {
            pipe.producer_acquire();
            cuda::memcpy_async(stage + threadIdx.x, in + round * copying + threadIdx.x,
                               cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            int sum = 0;
            for (unsigned i = 0; i < copying; ++i)
                sum += stage[i];
            out[round * (blockDim.x - copying) + threadIdx.x - copying] = sum;
            pipe.consumer_release();
        }
    }
}
TEST(BlockPipeline, ProducersAndConsumers) {
    for (const auto kernel : {divide_work<1>, divide_work<2>, divide_work<4>}) {
        for (const unsigned copying : {1u, 32u, 33u}) {
            for (const unsigned using_them : {1u, 64u, 95u}) {
                for (const unsigned rounds : {1u, 4u, 9u}) {
                    DeviceVector<int> in(counted(rounds * copying));
                    DeviceVector<int> out(rounds * using_them);
                    kernel<<<1, copying + using_them, 4 * copying * sizeof(int)>>>(out.data(), in.data(),
                                                                                   rounds, copying);
                    const std::vector<int> got = out.to_host();
                    for (unsigned i = 0; i < got.size(); ++i) {
                        const unsigned first = i / using_them * copying + 1;
                        ASSERT_EQ(got[i], static_cast<int>(copying * first + copying * (copying - 1) / 2))
                            << copying << " copy, " << using_them << " use, round " << i / using_them;
                    }
                }
            }
        }
    }
}

// All threads do both.
__global__ void share_work(int* out, const int* in, unsigned rounds) {
    constexpr unsigned kStages = 2;
    using State = cuda::pipeline_shared_state<cuda::thread_scope_block, kStages>;
    __shared__ alignas(alignof(State)) unsigned char memory[sizeof(State)];
    extern __shared__ int values[];
    auto& state = reinterpret_cast<State&>(memory);
    const cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const unsigned n = blockDim.x;
    const auto copy = [&](unsigned round) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, values + round % kStages * n, in + round * n, sizeof(int) * n, pipe);
        pipe.producer_commit();
    };
    if (rounds > 0) copy(0);
    for (unsigned round = 0; round < rounds; ++round) {
        if (round + 1 < rounds) copy(round + 1);
        pipe.consumer_wait();
        out[round * n + threadIdx.x] = values[round % kStages * n + (threadIdx.x + 1) % n];
        pipe.consumer_release();
    }
}
TEST(BlockPipeline, EveryThreadDoesBoth) {
    constexpr unsigned kThreads = 80;
    for (const unsigned rounds : {1u, 2u, 7u}) {
        DeviceVector<int> in(counted(rounds * kThreads));
        DeviceVector<int> out(rounds * kThreads);
        share_work<<<1, kThreads, 2 * kThreads * sizeof(int)>>>(out.data(), in.data(), rounds);
        const std::vector<int> got = out.to_host();
        for (unsigned i = 0; i < got.size(); ++i)
            ASSERT_EQ(got[i], static_cast<int>(i / kThreads * kThreads + (i % kThreads + 1) % kThreads) + 1)
                << i;
    }
}

}  // namespace
