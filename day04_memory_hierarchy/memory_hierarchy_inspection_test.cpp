// What the lesson says of requests and bytes, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "beyond/near_and_far.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/device_test.hpp"
#include "common/test/inspection_test.hpp"
#include "memory_hierarchy.hpp"

namespace {

using course::DeviceBuffer;

struct Loads {
    std::uint64_t requests = 0;
    std::uint64_t sectors = 0;
};

// Of all lines of the kernel that load from global memory.
template <class Launch>
Loads global_loads(Launch launch) {
    Loads loads;
    for (const course::KernelInspection& kernel : course::inspect(launch).kernels)
        for (const course::AccessLine& line : kernel.lines)
            if (line.space == course::Space::kGlobal && line.operation == course::Operation::kLoad) {
                loads.requests += line.requests;
                loads.sectors += line.transactions;
            }
    return loads;
}

Loads of_read(const std::string& version, std::size_t n) {
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(n);
    DeviceBuffer<unsigned> sums(day04::read_threads(1));
    return global_loads([&] {
        const auto versions =
            version.starts_with("stretch") ? day04::stretch_versions() : day04::read_versions();
        course::find_version(versions, version).launcher(x.span(), 1, sums.span(), nullptr);
    });
}

// All versions read the same sectors; a wide load brings four times as many bytes for a request.
TEST(Lesson, AWideLoadNeedsAFourthOfTheRequests) {
    const std::size_t n = 16 * day04::read_threads(1);
    const Loads one = of_read("read_one", n);
    EXPECT_EQ(one.requests, n / 32);
    EXPECT_EQ(one.sectors, n / 8) << "8 words of 4 bytes in a sector of 32";
    const Loads four = of_read("read_four", n);
    EXPECT_EQ(four.requests, one.requests);
    EXPECT_EQ(four.sectors, one.sectors);
    const Loads wide = of_read("read_wide", n);
    EXPECT_EQ(wide.requests, one.requests / 4);
    EXPECT_EQ(wide.sectors, one.sectors);
    for (const day04::ReadVersion& version : day04::stretch_versions()) {
        const Loads stretch = of_read(version.name, n);
        EXPECT_EQ(stretch.requests, one.requests) << version.name;
        EXPECT_EQ(stretch.sectors, one.sectors) << version.name;
    }
}

TEST(Lesson, TheCopyInSharedMemoryIsReadOnce) {
    const std::size_t lines = 100;
    const day04::Ring ring = day04::random_ring(lines, 4);
    std::vector<unsigned> words(lines * 32);
    for (std::size_t line = 0; line < lines; ++line)
        words[line * 32] = ring.next[line];
    const DeviceBuffer<unsigned> next{std::span(words)};
    DeviceBuffer<unsigned> last(1);
    const auto follow = [&](const std::string& version) {
        return global_loads([&] {
            course::find_version(day04::chase_versions(), version)
                .launcher(next.span(), 0, 500, last.span(), nullptr);
        });
    };
    EXPECT_EQ(follow("chase").requests, 500U);
    EXPECT_EQ(follow("chase_l2").requests, 500U);
    EXPECT_EQ(follow("chase_shared").requests, 100U) << "3,200 words, 32 at a time";
}

TEST(Beyond, SharedMemoryMakesTheRoundsLocal) {
    const std::size_t words = 4096;  // 16 KB, 32 requests of 512 bytes
    const std::size_t sms = course::multiprocessors();
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(words * sms);
    DeviceBuffer<unsigned> sums(day04::again_threads());
    const auto add_up = [&](const std::string& version) {
        return global_loads([&] {
            course::find_version(day04::again_versions(), version)
                .launcher(x.span(), 5, sums.span(), nullptr);
        });
    };
    EXPECT_EQ(add_up("again_l1").requests, 5 * 32 * sms);
    EXPECT_EQ(add_up("again_shared").requests, 32 * sms);
}

}  // namespace
