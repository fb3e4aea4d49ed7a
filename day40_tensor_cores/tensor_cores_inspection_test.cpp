// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "eight_bit/eight_bit.hpp"
#include "hopper/hopper.hpp"
#include "tensor_cores.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of whole tiles: those of a cluster of two blocks, and more along K than any version has stages, also half of it.
    std::function<void()> product(const day40::Version& version) {
        return [this, &kernel = version.launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), kN, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, kN),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN)},
                          nullptr);
        };
    }
    std::function<void()> product(const std::string& version) {
        return product(course::find_variant(day40::versions(), version));
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 26 * 64;
    const std::vector<__half> ones_ = std::vector<__half>(kN * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

// Eight rows that ldmatrix reads at once, each from 16 bytes of its own: a wavefront for each matrix, or one for each row.
TEST_F(Lesson, WithTheSwizzleNoBankConflictsAreLeft) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(product(version));
    }
    for (const char* version : {"mma_sync", "warp_tiles"}) {
        SCOPED_TRACE(version);
        EXPECT_FALSE(course::conflict_free(course::inspect(product(version))));
    }
}

// The slices in which C leaves the block.
TEST_F(Lesson, WhatTmaStoresIsFilledWithoutBankConflicts) {
    EXPECT_CONFLICT_FREE(product("async_store"));
}

// Four lanes that hold neighbours fill a sector of C.
TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead", "tma_wgmma", "persistent"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto versions : {day40::versions(), day40::tiles_to_choose_from()}) {
        for (const day40::Version& version : versions) {
            SCOPED_TRACE(version.name);
            EXPECT_NO_RACES(product(version));
        }
    }
}

class LessonOfBytes : public testing::Test {
  protected:
    // As above, of FP8, for which there are all versions.
    std::function<void()> product(const std::string& version) {
        return [this, &kernel = course::find_variant(day40::eight_bit::versions(), version).launcher.e4m3] {
            kernel.launch({.a = DeviceMatrix<const T>(a_.span(), kN, kDepth),
                           .b = DeviceMatrix<const T>(b_.span(), kN, kDepth),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN)},
                          nullptr);
        };
    }

  private:
    using T = __nv_fp8_e4m3;
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 7 * 128;
    const std::vector<T> ones_ = std::vector<T>(kN * kDepth, T(1.0f));
    const DeviceBuffer<T> a_{std::span(ones_)};
    const DeviceBuffer<T> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(LessonOfBytes, NoVersionHasBankConflictsOrRaces) {
    for (const day40::eight_bit::Version& version : day40::eight_bit::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_CONFLICT_FREE(product(version.name));
        EXPECT_NO_RACES(product(version.name));
    }
}

TEST_F(LessonOfBytes, ResultsAreStoredInWholeSectors) {
    EXPECT_COALESCED(product("bytes_mma_sync"));
}

}  // namespace
