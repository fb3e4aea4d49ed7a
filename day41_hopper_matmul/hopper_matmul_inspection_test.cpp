// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "beyond/rounded_result.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/inspection_test.hpp"
#include "hopper_matmul.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of whole tiles, more than there are clusters of two blocks (on up to six
    // threads): persistent blocks go on to a second tile. K has more steps than any ring has
    // stages, also when it is split.
    std::function<void()> product(const day41::Version& version) {
        return [this, &kernel = version.launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), rows_, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, kN),
                           .c = DeviceMatrix<float>(c_.span(), rows_, kN)},
                          nullptr);
        };
    }
    std::function<void()> product(const std::string& version) {
        return product(course::find_version(day41::versions(), version));
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 26 * 64;
    const std::size_t rows_ = 256 * (1 + std::clamp(course::multiprocessors() / 2, 1U, 3U));
    const std::vector<__half> ones_ = std::vector<__half>(rows_ * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_).first(kDepth * kN)};
    DeviceBuffer<float> c_{rows_ * kN};
};

// C passes through slices in shared memory.
TEST_F(Lesson, SlicesOfCAreFilledWithoutBankConflicts) {
    EXPECT_CONFLICT_FREE(product("async_store"));
}

// Four lanes that hold neighbours fill a sector of C.
TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    for (const char* version :
         {"tma_wgmma", "ring", "specialised", "wide_tile", "multicast", "persistent", "split_k"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto versions : {day41::versions(), day41::tiles_to_choose_from()}) {
        for (const day41::Version& version : versions) {
            SCOPED_TRACE(version.name);
            EXPECT_NO_RACES(product(version));
        }
    }
}

// Results of 16 bits, of a C whose rows are `pitch` elements apart.
class RoundedResults : public testing::Test {
  protected:
    std::function<void()> product(const std::string& version, std::size_t cols = kCols,
                                  std::size_t pitch = kCols) {
        return [this, cols, pitch,
                &kernel = course::find_version(day41::rounded_versions(), version).launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), kRows, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, cols, kCols),
                           .c = DeviceMatrix<__half>(c_.span(), kRows, cols, pitch)},
                          nullptr);
        };
    }

    static constexpr std::size_t kRows = 256;
    static constexpr std::size_t kCols = 256;
    static constexpr std::size_t kDepth = 72;

  private:
    const std::vector<__half> ones_ = std::vector<__half>(kRows * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_)};
    DeviceBuffer<__half> c_{kRows * (kCols + 8)};
};

// Stores of all three ways out of the slices: by TMA, in chunks of 16 bytes, by elements.
TEST_F(RoundedResults, SlicesHaveNoBankConflicts) {
    EXPECT_CONFLICT_FREE(product("stmatrix"));
    EXPECT_CONFLICT_FREE(product("stmatrix", 250, 256));
    EXPECT_CONFLICT_FREE(product("stmatrix", 255, 255));
}

// The sectors that stores to C touch, and how many their bytes would fill.
TEST_F(RoundedResults, StoredPairsFillHalfOfEachSector) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    std::size_t sectors = 0;
    std::size_t filled = 0;
    for (const course::KernelInspection& kernel : course::inspect(product("stored_pairs")).kernels) {
        for (const course::AccessLine& line : kernel.lines) {
            if (line.space != course::Space::kGlobal || line.operation != course::Operation::kStore) continue;
            sectors += line.transactions;
            filled += line.ideal;
        }
    }
    EXPECT_EQ(filled, kRows * kCols * sizeof(__half) / 32);
    EXPECT_EQ(sectors, 2 * filled);
}

TEST_F(RoundedResults, HaveNoRaces) {
    for (const char* version : {"stored_pairs", "stmatrix"}) {
        SCOPED_TRACE(version);
        EXPECT_NO_RACES(product(version));
        EXPECT_NO_RACES(product(version, 250, 256));
        EXPECT_NO_RACES(product(version, 255, 255));
    }
}

}  // namespace
