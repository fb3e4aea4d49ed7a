// Launches a kernel twice: as the stand-in runs it, which may be in loops over its threads
// (cuda_on_cpu/rows.h, regions.h), and cooperatively, where the threads run one by one.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "on_device.cuh"

constexpr int kElements = 1000;

template <class T>
std::vector<T> random_numbers(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<T> values(kElements);
    for (T& value : values)
        value = static_cast<T>(static_cast<float>(random() % 100000) / 1000.0f - 50.0f);
    return values;
}

// What is in `out` then, the same bits after both launches.
template <class T, class... Parameters, class... Arguments>
std::vector<T> run_both(dim3 grid, dim3 block, std::size_t dynamic_shared, void (*kernel)(T*, Parameters...),
                        Arguments... arguments) {
    const std::vector<T> before = random_numbers<T>(7);
    DeviceVector<T> out(before);
    kernel<<<grid, block, dynamic_shared>>>(out.data(), arguments...);
    DeviceVector<T> one_by_one(before);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);

    T* pointer = one_by_one.data();
    std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
    std::apply(
        [&](auto&... each) {
            void* addresses[] = {&pointer, &each...};
            EXPECT_EQ(cudaLaunchCooperativeKernel(kernel, grid, block, addresses, dynamic_shared, nullptr),
                      cudaSuccess);
        },
        values);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const std::vector<T> result = out.to_host();
    EXPECT_EQ(std::memcmp(result.data(), one_by_one.to_host().data(), result.size() * sizeof(T)), 0);
    return result;
}
template <class T, class... Parameters, class... Arguments>
std::vector<T> run_both(dim3 grid, dim3 block, void (*kernel)(T*, Parameters...), Arguments... arguments) {
    return run_both(grid, block, 0, kernel, arguments...);
}
