// Sums of a warp and of a block on their own. The floats are whole numbers, which are added
// exactly.
#include "warp_sums.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;

std::vector<float> whole_numbers(std::size_t count) {
    course::Random random(15);
    std::vector<float> values(count);
    for (float& value : values)
        value = static_cast<float>(random.integer(-100, 100));
    return values;
}

// The sums of `each` elements in a row; the last may have fewer.
std::vector<float> sums_of(const std::vector<float>& values, std::size_t each) {
    std::vector<float> sums;
    for (std::size_t first = 0; first < values.size(); first += each) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
        const auto count = std::min(each, values.size() - first);
        sums.push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0f));
    }
    return sums;
}

using WarpSums = course::DeviceTest;

TEST_F(WarpSums, OneForEach32Elements) {
    for (const std::size_t n : {1, 2, 31, 32, 33, 64, 255, 256, 257, 1000, 4096}) {
        const std::vector<float> values = whole_numbers(n);
        const std::vector<float> expected = sums_of(values, 32);
        const DeviceBuffer<float> in{std::span(values)};
        GuardedBuffer<float> out(expected.size());
        day15::sum_each_warp(in.span(), out.span(), nullptr);
        EXPECT_EQ(out.to_host(), expected) << "n = " << n;
        EXPECT_EQ(out.damage(), "");
    }
}

TEST_F(WarpSums, TakeNoSharedMemory) {
    const DeviceBuffer<float> in = course::zeros<float>(32);
    DeviceBuffer<float> out(1);
    day15::sum_each_warp(in.span(), out.span(), nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(day15::shared_bytes_of_sum_each_warp(), 0U)
        << "bytes of shared memory: the lanes of a warp can exchange registers";
}

TEST_F(WarpSums, RefuseOtherLengths) {
    const DeviceBuffer<float> in = course::zeros<float>(33);
    DeviceBuffer<float> out(1);
    EXPECT_THROW(day15::sum_each_warp(in.span(), out.span(), nullptr), std::invalid_argument);
    EXPECT_THROW(day15::sum_in_a_row(in.span(), out.span(), nullptr), std::invalid_argument);
}

using BlockSums = course::DeviceTest;

// A warp that is ahead stores its sum for the next call while the first warp still reads those of
// this one.
TEST_F(BlockSums, OneAfterTheOtherWithNothingInBetween) {
    const std::vector<float> values = whole_numbers(256 * 20);
    const DeviceBuffer<float> in{std::span(values)};
    GuardedBuffer<float> out(20);
    day15::sum_in_a_row(in.span(), out.span(), nullptr);
    EXPECT_EQ(out.to_host(), sums_of(values, 256)) << "sums of 256 elements, 20 calls of block_sum in a row";
    EXPECT_EQ(out.damage(), "");
}

}  // namespace
