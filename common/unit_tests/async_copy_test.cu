// Asynchronous copies through common/device/ptx.cuh: requirements that hold on every GPU and on
// the stand-in.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/test/device_test.hpp"

namespace {

using namespace course;

using AsyncCopyTest = DeviceTest;

std::vector<float> numbers(std::size_t count) {
    std::vector<float> result(count);
    std::iota(result.begin(), result.end(), 1.0f);
    return result;
}

constexpr unsigned kThreads = 96;

// Each thread copies one, two or four values, and outputs the values that another thread has
// copied.
template <int kValues>
__global__ void reverse(float* out, const float* in) {
    alignas(16) __shared__ float tile[kThreads * kValues];
    const unsigned mine = threadIdx.x * kValues;
    if constexpr (kValues == 4) {
        ptx::cp_async_16(tile + mine, in + mine);
    } else if constexpr (kValues == 2) {
        ptx::cp_async_8(tile + mine, in + mine);
    } else {
        ptx::cp_async_4(tile + mine, in + mine);
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    __syncthreads();
    for (unsigned i = mine; i < mine + kValues; ++i)
        out[i] = tile[kThreads * kValues - 1 - i];
}

template <int kValues>
void expect_reversed() {
    std::vector<float> values = numbers(kThreads * kValues);
    const DeviceBuffer<float> in{std::span<const float>(values)};
    DeviceBuffer<float> out(values.size());
    reverse<kValues><<<1, kThreads>>>(out.data(), in.data());
    CUDA_CHECK_LAUNCH();
    EXPECT_EQ(out.to_host(), std::vector<float>(values.rbegin(), values.rend()));
}

TEST_F(AsyncCopyTest, WholeCopiesArrive) {
    expect_reversed<1>();
    expect_reversed<2>();
    expect_reversed<4>();
}

// Thread v overwrites 16 bytes with a copy of which v bytes are valid, and 4 bytes with a copy
// that is valid if v is odd.
constexpr unsigned kCounts = 17;
__global__ void copy_valid_bytes(std::uint8_t* out16, std::uint8_t* out4, const std::uint8_t* in) {
    alignas(16) __shared__ std::uint8_t wide[16 * kCounts];
    alignas(16) __shared__ std::uint8_t narrow[4 * kCounts];
    const unsigned valid = threadIdx.x;
    std::uint8_t* my_wide = wide + 16 * valid;
    std::uint8_t* my_narrow = narrow + 4 * valid;
    std::memset(my_wide, 0x55, 16);
    std::memset(my_narrow, 0x55, 4);
    ptx::cp_async_16(my_wide, in + 16 * valid, valid);
    ptx::cp_async_4(my_narrow, in + 4 * valid, valid % 2 == 1);
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    std::memcpy(out16 + 16 * valid, my_wide, 16);
    std::memcpy(out4 + 4 * valid, my_narrow, 4);
}

TEST_F(AsyncCopyTest, BytesThatAreNotValidBecomeZero) {
    std::vector<std::uint8_t> bytes(16 * kCounts);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(1 + i % 255);
    const DeviceBuffer<std::uint8_t> in{std::span<const std::uint8_t>(bytes)};
    DeviceBuffer<std::uint8_t> out16(16 * kCounts);
    DeviceBuffer<std::uint8_t> out4(4 * kCounts);
    copy_valid_bytes<<<1, kCounts>>>(out16.data(), out4.data(), in.data());
    CUDA_CHECK_LAUNCH();

    std::vector<std::uint8_t> expected16 = bytes;
    std::vector<std::uint8_t> expected4(bytes.begin(), bytes.begin() + 4 * kCounts);
    for (unsigned valid = 0; valid < kCounts; ++valid) {
        for (unsigned i = valid; i < 16; ++i)
            expected16[16 * valid + i] = 0;
        for (unsigned i = 0; i < 4; ++i)
            if (valid % 2 == 0) expected4[4 * valid + i] = 0;
    }
    EXPECT_EQ(out16.to_host(), expected16);
    EXPECT_EQ(out4.to_host(), expected4);
}

__global__ void copy_nothing_from(const float* nowhere, float* out) {
    alignas(16) __shared__ float tile[7];
    for (float& value : tile)
        value = 9;
    ptx::cp_async_16(tile, nowhere, 0);
    ptx::cp_async_8(tile + 4, nowhere, false);
    ptx::cp_async_4(tile + 6, nowhere, false);
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    for (int i = 0; i < 7; ++i)
        out[i] = tile[i];
}

TEST_F(AsyncCopyTest, ASourceOfNoValidBytesIsNotRead) {
    const DeviceBuffer<float> in(1024);
    DeviceBuffer<float> out(7);
    // Null, memory that is not allocated, and an address that is not 16-byte aligned.
    for (const float* nowhere :
         {static_cast<const float*>(nullptr), in.data() + (std::size_t{1} << 40), in.data() + 1}) {
        CUDA_CHECK(cudaMemset(out.data(), 0xFF, 7 * sizeof(float)));
        copy_nothing_from<<<1, 1>>>(nowhere, out.data());
        CUDA_CHECK_LAUNCH();
        EXPECT_EQ(out.to_host(), std::vector<float>(7, 0.0f));
    }
}

// A GPU may complete newer groups early, so only groups that were waited for are read.
__global__ void look_at_each_group(float* out, const float* in) {
    __shared__ float tile[3];
    for (int i = 0; i < 3; ++i) {
        ptx::cp_async_4(tile + i, in + i);
        ptx::cp_async_commit();
    }
    ptx::cp_async_wait<2>();
    out[0] = tile[0];
    ptx::cp_async_commit();  // an empty group counts, too
    ptx::cp_async_wait<2>();
    out[1] = tile[1];
    ptx::cp_async_wait<0>();
    out[2] = tile[2];
}

TEST_F(AsyncCopyTest, GroupsCompleteFromTheOldestOn) {
    const std::vector<float> values = numbers(3);
    const DeviceBuffer<float> in{std::span<const float>(values)};
    DeviceBuffer<float> out(3);
    look_at_each_group<<<1, 1>>>(out.data(), in.data());
    CUDA_CHECK_LAUNCH();
    EXPECT_EQ(out.to_host(), values);
}

// The sum of each column of (tiles x kThreads) values: while one tile is added, the next kStages -
// 1 are in flight.
template <int kStages>
__global__ void sum_columns(float* out, const float* in, int tiles) {
    __shared__ float stage[kStages][kThreads];
    const auto issue = [&](int tile) {
        const float* source = in + static_cast<std::size_t>(tile) * kThreads + threadIdx.x;
        ptx::cp_async_4(&stage[tile % kStages][threadIdx.x], source, tile < tiles);
        ptx::cp_async_commit();
    };
    for (int tile = 0; tile < kStages - 1; ++tile)
        issue(tile);
    const unsigned other = kThreads - 1 - threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        ptx::cp_async_wait<kStages - 2>();
        __syncthreads();
        issue(tile + kStages - 1);
        sum += stage[tile % kStages][other];
    }
    ptx::cp_async_wait<0>();
    out[blockIdx.x * kThreads + other] = sum;
}

template <int kStages>
void expect_column_sums(int tiles) {
    const std::vector<float> values = numbers(static_cast<std::size_t>(tiles) * kThreads);
    const DeviceBuffer<float> in{std::span<const float>(values)};
    constexpr unsigned kBlocks = 3;
    DeviceBuffer<float> out(kBlocks * kThreads);
    sum_columns<kStages><<<kBlocks, kThreads>>>(out.data(), in.data(), tiles);
    CUDA_CHECK_LAUNCH();
    std::vector<float> expected(out.size(), 0.0f);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        for (int tile = 0; tile < tiles; ++tile)
            expected[i] += values[static_cast<std::size_t>(tile) * kThreads + i % kThreads];
    }
    EXPECT_EQ(out.to_host(), expected) << kStages << " stages, " << tiles << " tiles";
}

TEST_F(AsyncCopyTest, APipelineHasEveryTileInTime) {
    for (const int tiles : {0, 1, 2, 3, 4, 5, 20}) {
        expect_column_sums<2>(tiles);
        expect_column_sums<3>(tiles);
        expect_column_sums<4>(tiles);
    }
}

}  // namespace
