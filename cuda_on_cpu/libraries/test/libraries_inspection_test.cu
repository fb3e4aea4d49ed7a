// An inspection includes the writes of libraries, and finds no mistakes in their primitives.
#include <gtest/gtest.h>

#include <cub/cub.cuh>
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
