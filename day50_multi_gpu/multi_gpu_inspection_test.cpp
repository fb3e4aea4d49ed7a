// What the results do not show: that no version has a race, and that all stores are coalesced.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "domain.hpp"
#include "multi_gpu.hpp"

namespace {

using day50::Domain;
using day50::Extents;

// Before the stand-in reads them. Streams run late, so that what no event orders is known.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "3", 0);
const int streams_are_set = setenv("CUDA_ON_CPU_STREAMS", "late", 0);

// Three steps of 64 x 12 x 14 cells on three ranks, each with a device of its own.
class Lesson : public testing::Test {
  protected:
    std::function<void()> steps(const day50::Version& version) {
        return [this, &version] {
            version.launcher(domain_, 3, nullptr);
            CUDA_CHECK(cudaStreamSynchronize(nullptr));
        };
    }

    // Of a problem that the version can run.
    std::vector<const day50::Version*> versions() const {
        std::vector<const day50::Version*> able;
        for (const day50::Version& version : day50::versions()) {
            if (version.cannot_run(day50::problem_of(domain_, 3)).empty()) able.push_back(&version);
        }
        return able;
    }

    Lesson() { domain_.copy_from(std::vector<float>(kExtents.cells(), 1.0f)); }

  private:
    static constexpr Extents kExtents{64, 12, 14};
    Domain domain_{kExtents, std::vector<int>{0, 1, 2}};
};

// Neither within a launch nor between launches and copies, of one device or several.
TEST_F(Lesson, NoVersionHasRaces) {
    ASSERT_GE(versions().size(), 4u);
    for (const day50::Version* version : versions()) {
        SCOPED_TRACE(version->name);
        EXPECT_NO_RACES(steps(*version));
    }
}

// Those to the neighbours' memory, too. Loads of x - 4 to x + 4 need not begin with a sector.
TEST_F(Lesson, AllStoresAreCoalesced) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    for (const day50::Version* version : versions()) {
        SCOPED_TRACE(version->name);
        std::size_t stores = 0;
        for (const course::KernelInspection& kernel : course::inspect(steps(*version)).kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.operation != course::Operation::kStore || line.bytes != sizeof(float)) continue;
                EXPECT_EQ(line.transactions, line.ideal) << course::described(line);
                ++stores;
            }
        }
        EXPECT_GT(stores, 0u);
    }
}

}  // namespace
