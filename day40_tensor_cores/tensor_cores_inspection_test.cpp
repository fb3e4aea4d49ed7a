// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "tensor_cores.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of whole tiles; K has more steps than any version has stages.
    std::function<void()> product(const day40::Version& version) {
        return [this, &kernel = version.launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), kN, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, kN),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN)},
                          nullptr);
        };
    }
    std::function<void()> product(const std::string& version) {
        return product(course::find_version(day40::versions(), version));
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 26 * 64;
    const std::vector<__half> ones_ = std::vector<__half>(kN * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(Lesson, WithTheSwizzleNoBankConflictsAreLeft) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(product(version));
    }
}

// ldmatrix reads four matrices of eight rows of 16 bytes: a wavefront for each matrix, or one for
// each row, where the rows of a matrix begin in the same bank.
TEST_F(Lesson, AnLdmatrixTakes32WavefrontsOr4) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<std::pair<std::string, unsigned>> expected = {
        {"mma_sync", 32}, {"warp_tiles", 32}, {"swizzled", 4}, {"multi_stage", 4}, {"fragments_ahead", 4}};
    for (const auto& [version, wavefronts] : expected) {
        SCOPED_TRACE(version);
        const course::Inspection seen = course::inspect(product(version));
        ASSERT_EQ(seen.kernels.size(), 1U);
        unsigned loads = 0;
        for (const course::AccessLine& line : seen.kernels[0].lines) {
            if (line.operation != course::Operation::kMatrixLoad) continue;
            ++loads;
            EXPECT_EQ(line.transactions, wavefronts * line.requests) << course::described(line);
        }
        EXPECT_EQ(loads, 2U) << "lines: one for A, one for B";
    }
}

// Four lanes that hold neighbours fill a sector of C.
TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day40::Version& version : day40::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(product(version));
    }
}

}  // namespace
