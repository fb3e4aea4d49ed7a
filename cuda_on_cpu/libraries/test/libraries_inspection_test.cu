// An inspection includes the writes of libraries, and finds no mistakes in their primitives.
#include <gtest/gtest.h>

#include <cub/cub.cuh>
#include <set>
#include <string>
#include <vector>

#include "cuda_on_cpu/inspection.h"

namespace {

__global__ void increment(int* x) {
    ++x[threadIdx.x];
}

__global__ void sum_up(int* x) {
    using Reduce = cub::BlockReduce<int, 64>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ Reduce::TempStorage storage;
    __shared__ Scan::TempStorage scan_storage;
    int before = 0;
    Scan(scan_storage).ExclusiveSum(x[threadIdx.x], before);
    const int sum = Reduce(storage).Sum(before);
    if (threadIdx.x == 0) x[0] = sum;
}

// Two uses of one storage, with a barrier between them or without.
enum class Block {
    kScan,
    kReduce,
    kSort,
    kMergeSort,
    kExchange,
    kLoad,
    kStore,
    kHeads,
    kHistogram,
    kScanAndReduce
};
template <Block kBlock, int kItems = 1>
__global__ void use_twice(int* x, bool with_barrier) {
    constexpr int kThreads = 64;
    const int i = static_cast<int>(threadIdx.x);
    int item[kItems], seen[kItems];
    for (int j = 0; j < kItems; ++j)
        item[j] = seen[j] = x[i * kItems + j] % 16;
    using Scan = cub::BlockScan<int, kThreads>;
    using Reduce = cub::BlockReduce<int, kThreads>;
    using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
    using MergeSort = cub::BlockMergeSort<int, kThreads, kItems>;
    using Exchange = cub::BlockExchange<int, kThreads, kItems>;
    using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
    using Heads = cub::BlockDiscontinuity<int, kThreads>;
    using Histogram = cub::BlockHistogram<int, kThreads, kItems, 16>;
    __shared__ int bins[2][16];
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
        typename Sort::TempStorage sort;
        typename MergeSort::TempStorage merge_sort;
        typename Exchange::TempStorage exchange;
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Heads::TempStorage heads;
        typename Histogram::TempStorage histogram;
    } storage;
    for (int round = 0; round < 2; ++round) {
        switch (kBlock) {
            case Block::kScan:
                Scan(storage.scan).ExclusiveSum(item, seen);
                break;
            case Block::kReduce:
                seen[0] = Reduce(storage.reduce).Sum(item);
                break;
            case Block::kSort:
                Sort(storage.sort).Sort(item);
                break;
            case Block::kMergeSort:
                MergeSort(storage.merge_sort).Sort(item, [](int a, int b) { return a < b; });
                break;
            case Block::kExchange:
                Exchange(storage.exchange).BlockedToStriped(item, seen);
                break;
            case Block::kLoad:
                Load(storage.load).Load(x, item);
                break;
            case Block::kStore:
                Store(storage.store).Store(x + kThreads * kItems * (1 + round), item);
                break;
            case Block::kHeads:
                Heads(storage.heads).FlagHeads(seen, item, [](int a, int b) { return a != b; });
                break;
            case Block::kHistogram:
                Histogram(storage.histogram).Histogram(item, bins[round]);
                break;
            case Block::kScanAndReduce:
                if (round == 0) {
                    Scan(storage.scan).InclusiveSum(item, seen);
                } else {
                    seen[0] = Reduce(storage.reduce).Sum(item);
                }
                break;
        }
        if (with_barrier) __syncthreads();
    }
    x[3 * kThreads * kItems + i] = seen[0];
}

// The findings when `increment` reads 64 elements that `write` has written, and sum_up runs after
// it.
template <class Write>
std::vector<std::string> findings(Write write) {
    int *x = nullptr, *ones = nullptr;
    cudaMalloc(&x, 64 * sizeof(int));
    cudaMalloc(&ones, 64 * sizeof(int));
    cudaMemset(ones, 1, 64 * sizeof(int));
    cuda_on_cpu::begin_inspection({});
    write(ones, x);
    increment<<<1, 64>>>(x);
    sum_up<<<1, 64>>>(x);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<std::string> kinds;
    for (const auto& kernel : cuda_on_cpu::end_inspection().kernels) {
        for (const auto& finding : kernel.findings)
            kinds.push_back(finding.kind);
    }
    cudaFree(x);
    cudaFree(ones);
    return kinds;
}

template <Block kBlock, int kItems = 1>
std::vector<std::string> findings_of_two_uses(bool with_barrier) {
    constexpr std::size_t kBytes = 4 * 64 * kItems * sizeof(int);
    int* x = nullptr;
    cudaMalloc(&x, kBytes);
    cudaMemset(x, 0, kBytes);
    cuda_on_cpu::begin_inspection({});
    use_twice<kBlock, kItems><<<1, 64>>>(x, with_barrier);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::set<std::string> kinds;
    for (const auto& kernel : cuda_on_cpu::end_inspection().kernels) {
        for (const auto& finding : kernel.findings)
            kinds.insert(finding.kind);
    }
    cudaFree(x);
    return {kinds.begin(), kinds.end()};
}
template <Block kBlock, int kItems = 1>
void expect_race_without_barrier() {
    EXPECT_EQ((findings_of_two_uses<kBlock, kItems>(false)), std::vector<std::string>{"race"})
        << static_cast<int>(kBlock) << ", " << kItems;
    EXPECT_EQ((findings_of_two_uses<kBlock, kItems>(true)), std::vector<std::string>{})
        << static_cast<int>(kBlock) << ", " << kItems;
}

TEST(InspectedLibraries, StorageOfABlockNeedsABarrierBeforeItIsUsedAgain) {
    expect_race_without_barrier<Block::kScan>();
    expect_race_without_barrier<Block::kScan, 4>();
    expect_race_without_barrier<Block::kReduce>();
    expect_race_without_barrier<Block::kSort>();
    expect_race_without_barrier<Block::kSort, 3>();
    expect_race_without_barrier<Block::kMergeSort, 2>();
    expect_race_without_barrier<Block::kExchange>();
    expect_race_without_barrier<Block::kExchange, 2>();
    expect_race_without_barrier<Block::kLoad>();
    expect_race_without_barrier<Block::kStore, 2>();
    expect_race_without_barrier<Block::kHeads>();
    expect_race_without_barrier<Block::kHistogram, 2>();
    expect_race_without_barrier<Block::kScanAndReduce>();
}

TEST(InspectedLibraries, WhatCubWritesIsInitialised) {
    const auto scan = [](int* in, int* out) {
        char storage = 0;
        std::size_t bytes = sizeof storage;
        EXPECT_EQ(cub::DeviceScan::InclusiveSum(&storage, bytes, in, out, 64), cudaSuccess);
    };
    EXPECT_EQ(findings(scan), std::vector<std::string>{});
    EXPECT_EQ(findings([](int*, int*) {}), std::vector<std::string>{"uninitialised_read"});
}

}  // namespace
