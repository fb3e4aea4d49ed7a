// The swizzle's formula, exhaustively, and what a kernel with it counts.
#include "beyond/swizzle.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"

namespace {

using day06::swizzled_column;
using day06::SwizzledTile;

constexpr unsigned kLine = 128;

std::string text_of(const SwizzledTile& tile) {
    return "rows of " + std::to_string(tile.row_bytes) + " bytes, accesses of " +
           std::to_string(tile.access_bytes) + ", elements of " + std::to_string(tile.element_bytes);
}

std::vector<SwizzledTile> all_tiles() {
    std::vector<SwizzledTile> tiles;
    for (const unsigned row : {8, 16, 32, 64, 128, 256, 384, 512, 640, 1024}) {
        for (const unsigned access : {4, 8, 16}) {
            for (const unsigned element : {1, 2, 4, 8, 16}) {
                const SwizzledTile tile{row, access, element};
                if (day06::why_no_swizzle(tile).empty()) tiles.push_back(tile);
            }
        }
    }
    return tiles;
}

// The XOR repeats after 32 rows at most, so these are all rows, and those that follow the last one.
constexpr unsigned kRows = 64;

// The place in its line, in units, of each unit of a tile, row by row.
std::vector<unsigned> places_of(const SwizzledTile& tile) {
    const unsigned per_unit = tile.access_bytes / tile.element_bytes;
    std::vector<unsigned> places;
    for (unsigned row = 0; row < kRows; ++row) {
        for (unsigned col = 0; col < tile.row_bytes / tile.element_bytes; col += per_unit) {
            const unsigned byte = row * tile.row_bytes + swizzled_column(tile, row, col) * tile.element_bytes;
            EXPECT_EQ(byte % tile.access_bytes, 0u);
            places.push_back(byte % kLine / tile.access_bytes);
        }
    }
    return places;
}

// Are `lanes` places different, from `first` on and `step` apart?
bool all_different(const std::vector<unsigned>& places, std::size_t first, std::size_t step, unsigned lanes) {
    std::uint32_t taken = 0;
    for (unsigned lane = 0; lane < lanes; ++lane)
        taken |= std::uint32_t{1} << places[first + lane * step];
    return std::popcount(taken) == static_cast<int>(lanes);
}

TEST(Swizzle, IsAPermutationOfEachRow) {
    for (const SwizzledTile& tile : all_tiles()) {
        for (unsigned row = 0; row < kRows; ++row) {
            std::vector<bool> taken(tile.row_bytes / tile.element_bytes);
            for (unsigned col = 0; col < taken.size(); ++col) {
                const unsigned to = swizzled_column(tile, row, col);
                ASSERT_LT(to, taken.size()) << text_of(tile) << ", row " << row << ", column " << col;
                ASSERT_FALSE(taken[to]) << text_of(tile) << ", row " << row << ", column " << col;
                taken[to] = true;
            }
        }
    }
}

TEST(Swizzle, TheLanesOfAPhaseDoNotMeetDownAColumn) {
    for (const SwizzledTile& tile : all_tiles()) {
        const unsigned lanes = kLine / tile.access_bytes;
        const unsigned units = tile.row_bytes / tile.access_bytes;
        const std::vector<unsigned> places = places_of(tile);
        for (unsigned row = 0; row + lanes <= kRows; ++row) {  // from any row on
            for (unsigned unit = 0; unit < units; ++unit) {
                ASSERT_TRUE(all_different(places, row * units + unit, units, lanes))
                    << text_of(tile) << ", rows from " << row << ", unit " << unit;
            }
        }
    }
}

TEST(Swizzle, NorAlongARow) {
    for (const SwizzledTile& tile : all_tiles()) {
        const unsigned lanes = kLine / tile.access_bytes;
        const unsigned units = tile.row_bytes / tile.access_bytes;
        const std::vector<unsigned> places = places_of(tile);
        // From any unit on; in rows shorter than a line, from the start of a line on.
        const unsigned step = units < lanes ? lanes : 1;
        for (unsigned first = 0; first + lanes <= kRows * units; first += step) {
            if (step == 1 && first % units + lanes > units) continue;
            ASSERT_TRUE(all_different(places, first, 1, lanes)) << text_of(tile) << ", units from " << first;
        }
    }
}

TEST(Swizzle, IsThatOfTheLessons) {
    for (unsigned row = 0; row < 64; ++row) {
        for (unsigned unit = 0; unit < 4; ++unit) {
            EXPECT_EQ(swizzled_column({128, 4, 4}, row % 32, unit), unit ^ row % 32);       // swizzled
            EXPECT_EQ(swizzled_column({256, 16, 16}, row, unit), unit ^ row % 8);           // vectorised
            EXPECT_EQ(swizzled_column({128, 16, 2}, row, 8 * unit), 8 * (unit ^ row % 8));  // day 40
            EXPECT_EQ(swizzled_column({64, 16, 2}, row, 8 * unit), 8 * (unit ^ row / 2 % 4));
        }
    }
}

TEST(Swizzle, SaysWhatItHasNoPlaceFor) {
    EXPECT_EQ(day06::why_no_swizzle({96, 16, 4}),
              "row_bytes is 96; expected a multiple of 128, or a power of two of at least two accesses");
    EXPECT_EQ(day06::why_no_swizzle({0, 4, 4}),
              "row_bytes is 0; expected a multiple of 128, or a power of two of at least two accesses");
    EXPECT_EQ(day06::why_no_swizzle({128, 2, 2}), "access_bytes is 2; expected 4, 8 or 16");
    EXPECT_EQ(day06::why_no_swizzle({128, 4, 8}),
              "element_bytes is 8; expected 1, 2, 4... up to access_bytes");
    EXPECT_EQ(day06::why_no_swizzle({384, 16, 2}), "");
}

class SwizzledTiles : public course::DeviceTest {};

TEST_F(SwizzledTiles, ARowIsFoundAgain) {
    for (const SwizzledTile& tile :
         {SwizzledTile{128, 4, 4}, {256, 16, 4}, {128, 16, 2}, {64, 16, 2}, {32, 8, 4}}) {
        for (const bool swizzle : {false, true}) {
            const std::vector<unsigned> unwritten(64, ~0u);
            course::DeviceBuffer<unsigned> out{std::span<const unsigned>(unwritten)};
            day06::launch_rows_then_columns(tile, swizzle, out.data(), nullptr);
            const std::vector<unsigned> got = out.to_host();
            const unsigned words = tile.access_bytes / 4;
            const unsigned units = tile.row_bytes / tile.access_bytes;
            for (unsigned row = 0; row < 64; ++row) {
                unsigned sum = 0;
                for (unsigned unit = 0; unit < units; ++unit) {
                    for (unsigned word = 0; word < words; ++word)
                        sum += ((row * units + unit) * words + word) * (unit + 1);
                }
                ASSERT_EQ(got[row], sum) << text_of(tile) << ", row " << row;
            }
        }
    }
    EXPECT_THROW(day06::launch_rows_then_columns({96, 16, 4}, true, nullptr, nullptr), std::invalid_argument);
}

}  // namespace
