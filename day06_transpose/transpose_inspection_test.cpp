// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "beyond/swizzle.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "common/test/inspection_test.hpp"
#include "transpose.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;
using course::Operation;
using course::Space;

// Requests of one kind, of all lines together.
struct Requests {
    double count = 0;
    double transactions = 0;

    double each() const { return transactions / count; }
};

Requests requests(const course::Inspection& seen, Space space, Operation operation) {
    Requests all;
    for (const course::KernelInspection& kernel : seen.kernels) {
        for (const course::AccessLine& line : kernel.lines) {
            if (line.space != space || line.operation != operation) continue;
            all.count += static_cast<double>(line.requests);
            all.transactions += static_cast<double>(line.transactions);
        }
    }
    return all;
}

testing::AssertionResult on_average(const Requests& requests, double expected, const std::string& a_request,
                                    const char* of_what) {
    if (requests.each() == expected) return testing::AssertionSuccess();
    if (requests.count == 0) return testing::AssertionFailure() << "the kernel has no " << a_request;
    return testing::AssertionFailure() << "a warp's " << a_request << " takes " << requests.each() << ' '
                                       << of_what << ", on average; expected " << expected;
}

// A request of a full warp on rows that begin at multiples of 32 bytes.
struct Claim {
    std::string version;
    double load_sectors;
    double store_sectors;
    double tile_store_wavefronts = 0;  // 0: there is no tile
    double tile_load_wavefronts = 0;
};

const std::vector<Claim> kClaims = {
    {"naive", 4, 32},
    {"strided_loads", 32, 4},
    {"tiled", 4, 4, 1, 32},
    {"padded", 4, 4, 1, 1},
    {"coarsened", 4, 4, 1, 1},
    {"swizzled", 4, 4, 1, 1},
    {"vectorised", 16, 16, 4, 4},
    {"aligned", 4, 4, 1, 1},
};

void PrintTo(const Claim& claim, std::ostream* out) {
    *out << claim.version;
}

std::string version_name(const testing::TestParamInfo<Claim>& claim) {
    return claim.param.version;
}

class Lesson : public testing::TestWithParam<Claim> {
  protected:
    void SetUp() override {
        if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Runs this version on a rows x cols matrix, and expects the right result without findings.
    // `out` begins so many elements after an aligned address.
    template <class T = std::uint32_t>
    course::Inspection inspect(std::size_t rows, std::size_t cols, std::size_t out_offset = 0) {
        std::vector<T> elements(rows * cols);
        for (std::size_t i = 0; i < elements.size(); ++i)
            elements[i] = static_cast<T>(i + 1);
        const DeviceBuffer<T> in{std::span<const T>(elements)};
        constexpr auto kUnwritten = static_cast<T>(-1);  // as course::is_unwritten() knows it
        const std::vector<T> unwritten(out_offset + rows * cols, kUnwritten);
        DeviceBuffer<T> out{std::span<const T>(unwritten)};
        const auto versions = GetParam().version == "skinny" ? day06::skinny_versions() : day06::versions();
        const auto& launch = course::find_version(versions, GetParam().version).launcher;
        const course::Inspection seen = course::inspect(
            [&] {
                launch(DeviceMatrix<const T>(in.span(), rows, cols),
                       DeviceMatrix<T>(out.span().subspan(out_offset, rows * cols), cols, rows), nullptr);
            },
            {.blocks_per_launch = 1024});  // all of them
        std::vector<T> expected = unwritten;
        day06::transpose_on_cpu(elements, rows, cols, std::span(expected).subspan(out_offset));
        const course::VerifyResult result = course::verify_exact(out.to_host(), expected, rows);
        EXPECT_TRUE(result.ok()) << rows << " x " << cols << ": " << result.message();
        EXPECT_TRUE(course::without_findings(seen));
        return seen;
    }
};

TEST_P(Lesson, SectorsAndWavefrontsOfARequest) {
    const Claim& claim = GetParam();
    const course::Inspection seen = inspect(128, 192);
    EXPECT_TRUE(on_average(requests(seen, Space::kGlobal, Operation::kLoad), claim.load_sectors,
                           "load from global memory", "sectors"));
    EXPECT_TRUE(on_average(requests(seen, Space::kGlobal, Operation::kStore), claim.store_sectors,
                           "store to global memory", "sectors"));
    if (claim.tile_store_wavefronts == 0) return;
    EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kStore), claim.tile_store_wavefronts,
                           "store to the tile", "wavefronts"));
    EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kLoad), claim.tile_load_wavefronts,
                           "load from the tile", "wavefronts"));
}

INSTANTIATE_TEST_SUITE_P(Transpose, Lesson, testing::ValuesIn(kClaims), version_name);

class AnyShape : public Lesson {};

TEST_P(AnyShape, HasNoFindings) {
    inspect(75, 203);
}

INSTANTIATE_TEST_SUITE_P(Transpose, AnyShape, testing::ValuesIn([] {
                             std::vector<Claim> claims = kClaims;
                             std::erase_if(claims, [](const Claim& c) { return c.version == "vectorised"; });
                             return claims;
                         }()),
                         version_name);

class Skinny : public Lesson {};

// 3 x 3008 has three tiles, the last one of 320: no request is cut off but the last ones.
TEST_P(Skinny, MovesWholeSectorsWithoutConflicts) {
    for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{3, 3008}, {3008, 3}}) {
        const course::Inspection seen = inspect(rows, cols);
        const Claim& claim = GetParam();
        EXPECT_TRUE(on_average(requests(seen, Space::kGlobal, Operation::kLoad), claim.load_sectors,
                               "load from global memory", "sectors"));
        EXPECT_TRUE(on_average(requests(seen, Space::kGlobal, Operation::kStore), claim.store_sectors,
                               "store to global memory", "sectors"));
        EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kStore), claim.tile_store_wavefronts,
                               "store to the tile", "wavefronts"));
        EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kLoad), claim.tile_load_wavefronts,
                               "load from the tile", "wavefronts"));
    }
    for (const std::size_t few : {1, 2, 7, 31, 32}) {
        inspect(few, 301);
        inspect(301, few);
        inspect<std::uint16_t>(few, 301);
        inspect<std::uint16_t>(301, few);
    }
}

INSTANTIATE_TEST_SUITE_P(Transpose, Skinny, testing::Values(Claim{"skinny", 4, 4, 1, 1}), version_name);

// 417 x 1007 leaves the same remainders as 4001 x 9999: rows of `in` are one word shorter than
// whole sectors, rows of `out` one word longer. A row of `out` lies in 53 sectors.
constexpr std::size_t kRows = 417;
constexpr std::size_t kCols = 1007;

double sectors_stored(const course::Inspection& seen) {
    return requests(seen, Space::kGlobal, Operation::kStore).transactions;
}

class Unshifted : public Lesson {};

TEST_P(Unshifted, StoresOfOddRowsStraddleSectors) {
    EXPECT_GT(sectors_stored(inspect(kRows, kCols)), 1.2 * 53 * kCols);
}

INSTANTIATE_TEST_SUITE_P(Transpose, Unshifted,
                         testing::Values(Claim{"padded", 0, 0}, Claim{"coarsened", 0, 0},
                                         Claim{"swizzled", 0, 0}),
                         version_name);

class Shifted : public Lesson {};

// Where a tile hangs over the edge, the stand-in takes some lanes of adjacent iterations for
// one request (cuda_on_cpu/docs/how_it_works.md, "Where the counts differ from a GPU's"). So the
// counts may be a few percent off.
constexpr double kCountedWrongly = 1.05;

TEST_P(Shifted, EachSectorOfOddRowsIsStoredOnce) {
    EXPECT_LE(sectors_stored(inspect(kRows, kCols)), kCountedWrongly * 53 * kCols);
}

// With a halo, a tile of 64 rows would load 72.
TEST_P(Shifted, NoRowIsLoadedTwiceWhereRowsBeginAtSectors) {
    EXPECT_EQ(requests(inspect(128, 192), Space::kGlobal, Operation::kLoad).count, 128 * 192 / 32);
    EXPECT_EQ(requests(inspect<std::uint16_t>(128, 192), Space::kGlobal, Operation::kLoad).count,
              128 * 192 / 32);
}

TEST_P(Shifted, TilesOfHalvesHaveNoBankConflicts) {
    const course::Inspection seen = inspect<std::uint16_t>(133, 191);
    EXPECT_LE(requests(seen, Space::kShared, Operation::kStore).each(), kCountedWrongly);
    EXPECT_LE(requests(seen, Space::kShared, Operation::kLoad).each(), kCountedWrongly);
}

// A pair of halves is stored in one access, which must be aligned.
TEST_P(Shifted, MisalignedMatricesHaveNoFindings) {
    inspect(64, 75, 1);
    inspect<std::uint16_t>(128, 75, 1);
}

TEST_P(Shifted, HalvesAreStoredInPairs) {
    const Requests stores = requests(inspect<std::uint16_t>(256, 192), Space::kGlobal, Operation::kStore);
    EXPECT_EQ(stores.count, 256 * 192 / 64);
    EXPECT_EQ(stores.each(), 4);
}

INSTANTIATE_TEST_SUITE_P(Transpose, Shifted, testing::Values(Claim{"aligned", 0, 0}), version_name);

class Packs : public Lesson {};

TEST_P(Packs, OfHalvesHaveNoBankConflictsEither) {
    const course::Inspection seen = inspect<std::uint16_t>(128, 256);
    EXPECT_TRUE(course::conflict_free(seen));
    EXPECT_TRUE(course::coalesced(seen));
}

INSTANTIATE_TEST_SUITE_P(Transpose, Packs, testing::Values(Claim{"vectorised", 0, 0}), version_name);

// beyond/swizzle.cu: rows are stored and columns loaded without a conflict, whatever the sizes.
// Without the XOR, the lanes of a phase meet.
TEST(Swizzle, LeavesNoConflicts) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    struct Counted {
        day06::SwizzledTile tile;
        double plain;  // wavefronts of a load without the XOR; the bytes need access_bytes / 4
    };
    for (const auto& [tile, plain] : {Counted{{128, 4, 4}, 32},
                                      {{256, 16, 4}, 32},
                                      {{128, 16, 2}, 32},
                                      {{64, 16, 2}, 16},
                                      {{32, 8, 4}, 8}}) {
        const std::string text = std::to_string(tile.row_bytes) + " and " + std::to_string(tile.access_bytes);
        DeviceBuffer<unsigned> out(64);
        for (const bool swizzle : {true, false}) {
            const course::Inspection seen =
                course::inspect([&] { day06::launch_rows_then_columns(tile, swizzle, out.data(), nullptr); });
            const double needed = tile.access_bytes / 4.0;
            EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kLoad), swizzle ? needed : plain,
                                   "load from a column", "wavefronts"))
                << text;
            EXPECT_TRUE(on_average(requests(seen, Space::kShared, Operation::kStore), needed,
                                   "store to a row", "wavefronts"))
                << text;
        }
    }
}

}  // namespace
