// Every version and every tile against the reference: most tests are those of
// common/test/half_matmul_test.hpp.
#include "hopper_matmul.hpp"

#include <algorithm>
#include <vector>

#include "common/test/half_matmul_test.hpp"

namespace course::half_matmul {

const char* const kTopic = "hopper_matmul";

bool loads_through_tma(const std::string& version) {
    return version != "realigned";
}

// `fitted` takes such a tile for the shapes tested here.
bool stores_through_tma(const std::string& version) {
    return version == "async_store" || version == "fitted" || version.starts_with("tile_");
}

namespace {

// The tiles of `fitted` that are not versions of their own.
std::vector<const Version*> further_tiles() {
    std::vector<const Version*> tiles;
    for (const Version& tile : day41::tiles_to_choose_from()) {
        const auto same = [&](const Version& version) { return version.name == tile.name; };
        if (std::ranges::none_of(day41::versions(), same)) tiles.push_back(&tile);
    }
    return tiles;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(HopperMatmul, VersionTest, each_of(day41::versions()), VersionName());
INSTANTIATE_TEST_SUITE_P(HopperMatmul, LargeShapes, each_of(day41::versions()), VersionName());
INSTANTIATE_TEST_SUITE_P(Tiles, VersionTest, testing::ValuesIn(further_tiles()), VersionName());
INSTANTIATE_TEST_SUITE_P(Tiles, LargeShapes, testing::ValuesIn(further_tiles()), VersionName());

}  // namespace course::half_matmul

namespace {

// Which tile `fitted` takes, on an H200 and on two cores.
TEST(TileFor, SuitsTheShape) {
    const auto tile = [](std::size_t m, std::size_t n, std::size_t k, std::size_t multiprocessors = 132) {
        return day41::tile_for({.m = m, .n = n, .k = k}, multiprocessors);
    };
    EXPECT_EQ(tile(512, 512, 512), "tile_64x64")
        << "64 tiles for 132 multiprocessors, and hardly any K to split";
    EXPECT_EQ(tile(64, 4096, 4096), "split_2_64x128") << "32 tiles of 64 x 128, each for two blocks";
    EXPECT_EQ(tile(256, 256, 8192), "split_4_64x64") << "16 tiles; K is long";
    EXPECT_EQ(tile(64, 64, 8192), "split_8_64x64") << "one tile for eight blocks";
    EXPECT_EQ(tile(1024, 1024, 1024), "tile_64x128") << "128 tiles";
    EXPECT_EQ(tile(256, 4096, 14336), "split_k") << "64 tiles of 128 x 128, and K is long";
    EXPECT_EQ(tile(3072, 3072, 3072), "tile_192x192")
        << "two rounds of 128 tiles; of 128 x 256 there are three";
    EXPECT_EQ(tile(8192, 8192, 8192), "async_store") << "many rounds: the largest tile";
    EXPECT_EQ(tile(2048, 2048, 2048, 2), "async_store") << "few multiprocessors are soon all at work";
}

}  // namespace
