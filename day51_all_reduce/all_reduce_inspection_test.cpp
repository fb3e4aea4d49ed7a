// What the results do not show: that no version has a race, within a launch or between launches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "all_reduce.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "group.hpp"

namespace {

// Before the stand-in reads them. Streams run late, so that what no event orders is known.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "3", 0);
const int streams_are_set = setenv("CUDA_ON_CPU_STREAMS", "late", 0);

// Two calls in place, on three ranks, each with a device of its own: the second one overwrites what
// the first one has read.
TEST(Lesson, NoVersionHasRaces) {
    constexpr std::size_t kCount = 13001;  // two blocks or more, and no whole number of packs
    for (const day51::Version& version : day51::versions()) {
        SCOPED_TRACE(version.name);
        day51::Group group(std::vector<int>{0, 1, 2});
        ASSERT_EQ(version.cannot_run(day51::problem_of(group, kCount)), "");
        std::vector<std::unique_ptr<course::DeviceBuffer<float>>> memory;
        day51::Arrays arrays;
        for (const day51::Rank& rank : group.ranks()) {
            const day51::OnDevice on(rank.device);
            memory.push_back(std::make_unique<course::DeviceBuffer<float>>(kCount));
            memory.back()->copy_from(std::vector<float>(kCount, 1.0f));
            arrays.in.emplace_back(memory.back()->span());
            arrays.out.push_back(memory.back()->span());
        }
        EXPECT_NO_RACES([&] {
            for (int call = 0; call < 2; ++call)
                version.launcher(group, arrays);
            for (const day51::Rank& rank : group.ranks())
                CUDA_CHECK(cudaStreamSynchronize(rank.stream));
        });
    }
}

}  // namespace
