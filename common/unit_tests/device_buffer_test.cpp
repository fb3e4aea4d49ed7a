#include "common/device/device_buffer.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <stdexcept>

#include "common/test/device_test.hpp"

namespace {

using DeviceBufferTest = course::DeviceTest;

using course::DeviceBuffer;

static_assert(!std::is_copy_constructible_v<DeviceBuffer<int>> &&
              !std::is_copy_assignable_v<DeviceBuffer<int>>);

std::vector<int> counting(std::size_t size) {
    std::vector<int> values(size);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

// The message of the exception that `call` throws, or "".
template <class Exception, class Call>
std::string message_of(const Call& call) {
    try {
        call();
    } catch (const Exception& error) {
        return error.what();
    }
    return "";
}

TEST_F(DeviceBufferTest, CarriesDataThereAndBack) {
    const std::vector<int> values = counting(1000);
    DeviceBuffer<int> buffer(1000);
    buffer.copy_from(values);
    EXPECT_EQ(buffer.to_host(), values);
    EXPECT_EQ(buffer.bytes(), 1000 * sizeof(int));
}

TEST_F(DeviceBufferTest, CopiesOnAStream) {
    cudaStream_t stream{};
    CUDA_CHECK(cudaStreamCreate(&stream));
    const std::vector<int> values = counting(77);
    DeviceBuffer<int> buffer(77);
    buffer.copy_from(values, stream);
    EXPECT_EQ(buffer.to_host(stream), values);
    CUDA_CHECK(cudaStreamDestroy(stream));
}

TEST_F(DeviceBufferTest, NoElementsIsLegal) {
    DeviceBuffer<int> buffer(0);
    buffer.copy_from({});
    EXPECT_TRUE(buffer.to_host().empty());
    EXPECT_TRUE(buffer.span().empty());
}

TEST_F(DeviceBufferTest, LengthsMustAgree) {
    DeviceBuffer<int> buffer(10);
    const std::string too_long = message_of<std::invalid_argument>([&] { buffer.copy_from(counting(11)); });
    EXPECT_NE(too_long.find("11 elements, expected 10"), std::string::npos) << too_long;
    std::vector<int> shorter(9);
    EXPECT_THROW(buffer.copy_to(shorter), std::invalid_argument);
}

TEST_F(DeviceBufferTest, RefusesASizeThatOverflows) {
    constexpr std::size_t kHalf = std::numeric_limits<std::size_t>::max() / 2;
    const std::string message = message_of<std::length_error>([] { DeviceBuffer<int> buffer(kHalf); });
    EXPECT_NE(message.find("elements of 4 bytes"), std::string::npos) << message;
}

TEST_F(DeviceBufferTest, OutOfMemorySaysHowMuchWasAskedAndIsFree) {
    constexpr std::size_t kTooMany = std::size_t{1} << 55;
    const std::string message = message_of<course::CudaError>([] { DeviceBuffer<int> buffer(kTooMany); });
    EXPECT_NE(message.find("asked for 128 PiB (36028797018963968 elements of 4 bytes)"), std::string::npos)
        << message;
    EXPECT_NE(message.find("iB are free"), std::string::npos) << message;
    EXPECT_NO_THROW(CUDA_CHECK_LAUNCH()) << "the error must not be blamed on the next launch";
}

TEST_F(DeviceBufferTest, MovingHandsOverTheMemory) {
    DeviceBuffer<int> source(counting(5));
    const int* const memory = source.data();
    DeviceBuffer<int> target(std::move(source));
    EXPECT_EQ(target.data(), memory);

    DeviceBuffer<int> assigned(3);
    assigned = std::move(target);
    EXPECT_EQ(assigned.data(), memory);
    EXPECT_EQ(assigned.to_host(), counting(5));
}

}  // namespace
