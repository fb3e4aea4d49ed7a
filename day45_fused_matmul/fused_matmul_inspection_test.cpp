// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "fused_matmul.hpp"
#include "masked.hpp"
#include "reduce.hpp"
#include "top_k.hpp"

namespace {

using course::DeviceBuffer;
using day45::Op;

class Lesson : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Aligned, and whole tiles of every version: two and more each way, more along K than a block has stages. `b_begin`: where the memory
    // of B begins, in floats behind a multiple of 16 bytes.
    day45::Factors factors(Op op_a = Op::kNone, Op op_b = Op::kNone, std::size_t b_begin = 0) const {
        const auto b = b_.span().subspan(b_begin, kN * kDepth);
        return {.a = {.first = op_a == Op::kNone ? a_.matrix(kN, kDepth) : a_.matrix(kDepth, kN)},
                .b = {.first = op_b == Op::kNone ? course::DeviceMatrix<const float>(b, kDepth, kN)
                                                 : course::DeviceMatrix<const float>(b, kN, kDepth)},
                .op_a = op_a,
                .op_b = op_b};
    }
    day45::Batch<float> c() { return {.first = c_.matrix(kN, kN)}; }

    course::Inspection product(const std::string& version, const day45::Factors& factors) {
        return course::inspect([&] {
            course::find_variant(day45::variants(), version)
                .launcher({.factors = factors, .c = c()}, nullptr);
        });
    }

    course::Inspection causal(const std::string& version) {
        return course::inspect([&] {
            course::find_variant(day45::masked_variants(), version)
                .launcher.launch({.factors = factors(), .c = c(), .mask = day45::Mask::causal()}, nullptr);
        });
    }

    course::Inspection minima(const std::string& version) {
        const auto& reducer = course::find_variant(day45::reduce_variants(), version).launcher;
        DeviceBuffer<float> values(kN);
        DeviceBuffer<std::uint64_t> scratch(reducer.scratch_size({.m = kN, .n = kN, .k = kDepth}));
        return course::inspect([&] {
            reducer.launch({.factors = factors(), .values = values.span(), .scratch = scratch.span()},
                           nullptr);
        });
    }

    course::Inspection neighbours(const std::string& version) {
        constexpr std::size_t kBest = 4;
        const auto& selector = course::find_variant(day45::top_k_variants(), version).launcher;
        DeviceBuffer<float> values(kN * kBest);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(
            selector.scratch_size({.m = kN, .n = kN, .d = kDepth, .k = kBest}));
        return course::inspect([&] {
            selector.launch({.factors = factors(),
                             .k = kBest,
                             .values = values.span(),
                             .indices = indices.span(),
                             .scratch = scratch.span()},
                            nullptr);
        });
    }

    // Of all lines with asynchronous copies to shared memory, a lane's share of so many bytes.
    static std::uint64_t copies(const course::Inspection& seen, unsigned bytes) {
        std::uint64_t requests = 0;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space == course::Space::kGlobal && line.operation == course::Operation::kAsyncCopy &&
                    line.bytes == bytes)
                    requests += line.requests;
            }
        }
        return requests;
    }
    static std::uint64_t copied_bytes(const course::Inspection& seen) {
        std::uint64_t bytes = 0;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space == course::Space::kGlobal && line.operation == course::Operation::kAsyncCopy)
                    bytes += line.bytes_used;
            }
        }
        return bytes;
    }
    static std::uint64_t written_bytes(const course::Inspection& seen) {
        std::uint64_t bytes = 0;
        for (const course::KernelInspection& kernel : seen.kernels)
            bytes += kernel.global_written_bytes;
        return bytes;
    }

    static constexpr std::size_t kN = 512;
    static constexpr std::size_t kDepth = 40;

  private:
    const std::vector<float> ones_ = std::vector<float>(kN * kDepth + 4, 1.0f);
    const DeviceBuffer<float> a_{std::span(ones_).first(kN * kDepth)};
    const DeviceBuffer<float> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

// Copies go to 32 different banks, whichever way the matrices lie, and fragments are read without conflicts. All of a sector that is
// touched is used: by copies of 32 bytes of four rows, and by results in float4.
TEST_F(Lesson, EveryLayoutIsFreeOfConflictsAndInWholeSectors) {
    for (const Op op_a : {Op::kNone, Op::kTranspose}) {
        for (const Op op_b : {Op::kNone, Op::kTranspose}) {
            SCOPED_TRACE(std::string(op_a == Op::kNone ? "N" : "T") + (op_b == Op::kNone ? "N" : "T"));
            const course::Inspection seen = product("pipelined", factors(op_a, op_b));
            EXPECT_TRUE(course::conflict_free(seen));
            EXPECT_TRUE(course::coalesced(seen));
        }
    }
}

// The same bytes of B in a quarter of the copies. A always comes float by float.
TEST_F(Lesson, AlignedRowsOfBTakeAQuarterOfTheCopies) {
    const course::Inspection aligned = product("pipelined", factors());
    const course::Inspection misaligned = product("pipelined", factors(Op::kNone, Op::kNone, 1));
    const std::uint64_t of_a = copies(aligned, 4);
    EXPECT_EQ(copies(misaligned, 16), 0u);
    EXPECT_EQ(copies(misaligned, 4) - of_a, 4 * copies(aligned, 16));
    EXPECT_EQ(copied_bytes(misaligned), copied_bytes(aligned));
}

// Of 16 tiles of 128 x 128 the diagonal crosses four, and six lie below it. The rest of C is written, and nothing is read for it.
TEST_F(Lesson, TilesThatKeepNothingAreNotLoaded) {
    const course::Inspection all = causal("element_mask");
    const course::Inspection some = causal("skip_tiles");
    EXPECT_GT(copied_bytes(some), 0u);
    EXPECT_EQ(copied_bytes(some) * 16, copied_bytes(all) * 10);
}

// Once; without the fusion, what the mask does not keep is written twice.
TEST_F(Lesson, MaskedProductsAreWrittenOnce) {
    for (const char* version : {"element_mask", "skip_tiles", "skip_large_tiles"}) {
        SCOPED_TRACE(version);
        EXPECT_EQ(written_bytes(causal(version)), kN * kN * sizeof(float));
    }
    EXPECT_GT(written_bytes(causal("unfused")), kN * kN * sizeof(float) * 14 / 10);
}

// What is written of a row is 8 bytes for each warp and block, in a sector of its own, and the result. How many blocks share a row depends on
// the number of multiprocessors: with a tile for each block it is a quarter of the product, with more tiles less.
TEST_F(Lesson, FusedReductionsDoNotWriteTheProduct) {
    constexpr std::size_t kProduct = kN * kN * sizeof(float);
    constexpr std::size_t kSector = 32;
    const auto& fused = course::find_variant(day45::reduce_variants(), "fused").launcher;
    const std::size_t parts = fused.scratch_size({.m = kN, .n = kN, .k = kDepth});  // without norms
    EXPECT_GE(written_bytes(minima("unfused")), kProduct);
    EXPECT_EQ(written_bytes(minima("fused")), parts * kSector + kN * sizeof(float));
    EXPECT_LE(parts * kSector, kProduct / 4);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day45::Batched& version : day45::variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(product(version.name, factors())));
    }
    for (const day45::Masked& version : day45::masked_variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(causal(version.name)));
    }
    for (const day45::Reduce& version : day45::reduce_variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(minima(version.name)));
    }
    for (const day45::TopK& version : day45::top_k_variants()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(neighbours(version.name)));
    }
}

}  // namespace
