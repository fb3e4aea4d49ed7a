// What the lesson says of its accesses, counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "beyond/half_top_k.hpp"
#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/matmul_inspection_test.hpp"
#include "top_k.hpp"

namespace {

using course::DeviceBuffer;

class Lesson : public course::MatmulInspectionTest {
  protected:
    static constexpr std::size_t kBest = 4;

    course::Inspection neighbours(const std::string& version, course::Op op_b = course::Op::kNone) {
        const auto& selector = course::find_version(day48::top_k_versions(), version).launcher;
        DeviceBuffer<float> values(kN * kBest);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(
            selector.scratch_size({.m = kN, .n = kN, .d = kDepth, .k = kBest}));
        return course::inspect(
            [&] {
                selector.launch({.operands = operands(course::Op::kNone, op_b),
                                 .k = kBest,
                                 .values = values.span(),
                                 .indices = indices.span(),
                                 .scratch = scratch.span()},
                                nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
    }
};

// What the kernels whose name contains `kernel` read from global memory.
std::uint64_t bytes_read_by(const std::string& kernel, const course::Inspection& seen) {
    std::uint64_t bytes = 0;
    for (const course::KernelInspection& each : seen.kernels) {
        if (each.name.find(kernel) != std::string::npos) bytes += each.global_read_bytes;
    }
    return bytes;
}

// How many keys append_better() has stored, the only 8-byte stores in fused.cuh.
std::uint64_t candidates(const course::Inspection& seen) {
    std::uint64_t keys = 0;
    for (const course::KernelInspection& kernel : seen.kernels) {
        if (kernel.name.find("list_best") == std::string::npos) continue;
        for (const course::AccessLine& line : kernel.lines) {
            if (line.space == course::Space::kGlobal && line.operation == course::Operation::kStore &&
                line.bytes == sizeof(std::uint64_t) && line.source.file.ends_with("fused.cuh"))
                keys += line.active_lanes;
        }
    }
    return keys;
}

TEST_F(Lesson, MinimaReadARowKTimesASelectionOnce) {
    constexpr std::size_t kMatrix = kN * kN * sizeof(float);
    EXPECT_EQ(bytes_read_by("select_k_minima", neighbours("k_minima")), kBest * kMatrix);
    EXPECT_EQ(bytes_read_by("select_best", neighbours("unfused")), kMatrix);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day48::TopK& version : day48::top_k_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_TRUE(course::without_findings(neighbours(version.name)));
        EXPECT_TRUE(course::without_findings(neighbours(version.name, course::Op::kTranspose)));
    }
}

// Each version on rows that TMA can address, in its own kernel. Six steps: the ring has four
// stages.
template <class E>
void expect_clean_halves() {
    const day48::TopKShape s{.m = 130, .n = 1500, .d = 328, .k = 40};
    const DeviceBuffer<E> a{
        std::span<const E>(course::make_data<E>(s.m * s.d, course::DataPattern::kSignedUniform, 1))};
    const DeviceBuffer<E> b{
        std::span<const E>(course::make_data<E>(s.n * s.d, course::DataPattern::kSignedUniform, 2))};
    for (const day48::HalfTopK<E>& version : day48::half_top_k_versions<E>()) {
        SCOPED_TRACE(version.name);
        if (!version.cannot_run(s).empty()) continue;
        DeviceBuffer<float> values(s.m * s.k);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(version.launcher.scratch_size(s));
        const course::Inspection seen = course::inspect(
            [&] {
                version.launcher.launch({.operands = {.a = {.first = a.matrix(s.m, s.d)},
                                                      .b = {.first = b.matrix(s.n, s.d)},
                                                      .op_b = course::Op::kTranspose},
                                         .k = s.k,
                                         .values = values.span(),
                                         .indices = indices.span(),
                                         .scratch = scratch.span()},
                                        nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
        EXPECT_TRUE(course::without_findings(seen));
        const bool on_wgmma = std::ranges::any_of(seen.kernels, [](const auto& kernel) {
            return kernel.name.find("list_best_half_wgmma") != std::string::npos;
        });
        EXPECT_EQ(on_wgmma, version.name == std::string("half_wgmma"));
    }
}

TEST_F(Lesson, NoVersionFor16BitsHasRaces) {
    expect_clean_halves<__half>();
    expect_clean_halves<__nv_bfloat16>();
}

// Nine tiles for each block, all of one row of tiles: blocks publish after 1, 2, 4 and 8 tiles, and
// read before the tile that follows.
TEST_F(Lesson, PublishedThresholdsKeepElementsOutOfTheLists) {
    const std::size_t blocks = course::multiprocessors();
    if (blocks == 1) GTEST_SKIP() << "needs two multiprocessors: blocks that share a row";
    const day48::TopKShape s{.m = 2, .n = blocks * 9 * 256, .d = 2, .k = 512};
    const DeviceBuffer<float> a{
        std::span<const float>(course::make_data<float>(s.m * s.d, course::DataPattern::kNormal, 1))};
    const DeviceBuffer<float> b{
        std::span<const float>(course::make_data<float>(s.n * s.d, course::DataPattern::kNormal, 2))};
    const auto inspected = [&](const std::string& version) {
        const auto& selector = course::find_version(day48::top_k_versions(), version).launcher;
        DeviceBuffer<float> values(s.m * s.k);
        DeviceBuffer<std::uint32_t> indices(values.size());
        DeviceBuffer<std::uint64_t> scratch(selector.scratch_size(s));
        return course::inspect(
            [&] {
                selector.launch({.operands = {.a = {.first = a.matrix(s.m, s.d)},
                                              .b = {.first = b.matrix(s.n, s.d)},
                                              .op_b = course::Op::kTranspose},
                                 .k = s.k,
                                 .values = values.span(),
                                 .indices = indices.span(),
                                 .scratch = scratch.span()},
                                nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
    };
    const course::Inspection own = inspected("fused_own_bounds");
    const course::Inspection shared = inspected("fused");
    EXPECT_TRUE(course::without_findings(own));
    EXPECT_TRUE(course::without_findings(shared));
    // Without a threshold a block lists all elements of its first six tiles. The last block of the
    // row to begin lists those of at most two: then all blocks have published.
    EXPECT_LE(candidates(shared) + s.m * 500, candidates(own));
}

}  // namespace
