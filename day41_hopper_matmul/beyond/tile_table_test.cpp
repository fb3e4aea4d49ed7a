// Tables of what tiles cost: fitted, written, read, refused; and a choice that follows from the
// table.
#include "beyond/tile_table.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/check.hpp"

namespace {

using course::Tiling;
using day41::Candidate;
using day41::Shape;
using day41::TileTable;
using day41::TimeOfShape;

std::vector<TimeOfShape> times_by_model(const Tiling& tiling, std::size_t multiprocessors) {
    std::vector<TimeOfShape> times;
    for (const Shape& shape : day41::shapes_to_measure(tiling, multiprocessors))
        times.push_back({shape, tiling.time(shape, multiprocessors)});
    return times;
}

TEST(TileFit, FindsTheTimesThatTheModelWasGiven) {
    for (const std::size_t multiprocessors : {132, 78}) {
        for (const auto& [version, tiling] : day41::candidates()) {
            const Tiling fitted =
                day41::fitted_to(tiling, times_by_model(tiling, multiprocessors), multiprocessors);
            EXPECT_NEAR(fitted.launch, tiling.launch, 1e-6) << version.name;
            EXPECT_NEAR(fitted.tile, tiling.tile, 1e-6) << version.name;
            EXPECT_NEAR(fitted.step, tiling.step, 1e-6) << version.name;
            EXPECT_NEAR(fitted.load, tiling.load, 1e-6) << version.name;
        }
    }
}

// A time of less than 0 would fit these best.
TEST(TileFit, HasNoNegativeTime) {
    Tiling tiling = day41::candidates().front().tiling;
    tiling.launch = -0.5;
    const std::vector<TimeOfShape> measured = times_by_model(tiling, 132);
    const Tiling fitted = day41::fitted_to(tiling, measured, 132);
    EXPECT_EQ(fitted.launch, 0);
    EXPECT_GT(fitted.tile, 0);
    for (const auto& [shape, microseconds] : measured)
        EXPECT_NEAR(fitted.time(shape, 132), microseconds, 0.1 * microseconds);
}

TEST(TileFit, RefusesATimeThatIsNone) {
    const Tiling& tiling = day41::candidates().front().tiling;
    EXPECT_THROW(day41::fitted_to(tiling, std::vector<TimeOfShape>{{{256, 256, 64}, 0}}, 132),
                 std::invalid_argument);
}

class TileTables : public testing::Test {
  protected:
    ~TileTables() override { std::filesystem::remove(file_); }

    // On this GPU, a step of any tile takes a millisecond, except of tile_64x64.
    static TileTable only_small_tiles(const std::string& device) {
        TileTable table{.device = device, .times = {}};
        for (const Candidate& candidate : day41::candidates())
            table.times.push_back({.tile = candidate.version.name,
                                   .launch = 2,
                                   .start = 3,
                                   .step = candidate.version.name == std::string("tile_64x64") ? 0.25 : 1000,
                                   .load = 0.5});
        return table;
    }
    const std::filesystem::path& written(const std::string& text) const {
        std::ofstream(file_) << text;
        return file_;
    }
    // The message of read_tile_table() without the directory of the file.
    std::string message_of(const std::string& text) const {
        try {
            day41::read_tile_table(written(text));
        } catch (const std::runtime_error& error) {
            const std::string message = error.what();
            const std::string directory = file_.parent_path().string() + "/";
            EXPECT_EQ(message.find(directory), 0U) << message;
            return message.substr(std::min(message.size(), directory.size()));
        }
        return "accepted";
    }
    static std::string chosen(const std::vector<Candidate>& candidates) {
        return day41::fastest(candidates, {.m = 8192, .n = 8192, .k = 8192}, 132).version.name;
    }

    std::filesystem::path file_ =
        std::filesystem::temp_directory_path() / ("tile_table_test_" + std::to_string(getpid()) + ".jsonl");
    const std::string name_ = file_.filename().string();
};

// First: the table is read once.
TEST_F(TileTables, FittedChoosesByTheFileOfThisGpu) {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    setenv("COURSE_WGMMA_TILE_COSTS", written(to_json_lines(only_small_tiles(properties.name))).c_str(), 1);
    const Shape shape{.m = 8192, .n = 8192, .k = 8192};
    EXPECT_EQ(day41::tile_on_current_gpu(shape), "tile_64x64");
    EXPECT_EQ(day41::tile_for(shape, 132), "async_store") << "by the table that ships";
}

TEST_F(TileTables, ATableSurvivesAFile) {
    const TileTable read = day41::read_tile_table(written(to_json_lines(only_small_tiles("A GPU"))));
    EXPECT_EQ(read.device, "A GPU");
    ASSERT_EQ(read.times.size(), day41::candidates().size());
    EXPECT_EQ(read.times[5].tile, "tile_64x64");
    EXPECT_EQ(read.times[5].launch, 2);
    EXPECT_EQ(read.times[5].start, 3);
    EXPECT_EQ(read.times[5].step, 0.25);
    EXPECT_EQ(read.times[5].load, 0.5);
}

TEST_F(TileTables, OnlyATableOfTheDeviceIsUsed) {
    written(to_json_lines(only_small_tiles("Another GPU")));
    EXPECT_EQ(chosen(day41::candidates_for("Another GPU", file_)), "tile_64x64");
    EXPECT_EQ(chosen(day41::candidates_for("NVIDIA H200", file_)), "async_store");
    std::filesystem::remove(file_);
    EXPECT_EQ(chosen(day41::candidates_for("Another GPU", file_)), "async_store");
}

TEST_F(TileTables, AMalformedOneIsRefused) {
    const std::string good = to_json_lines(only_small_tiles("A GPU"));
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t place = text.find(from);
        EXPECT_NE(place, std::string::npos) << from;
        return text.replace(place, from.size(), to);
    };
    EXPECT_EQ(message_of(good), "accepted");
    EXPECT_EQ(message_of("[]\n"),
              name_ + ":1: \"[]\" is no JSON object; expected a line that ./course tune has written");
    EXPECT_EQ(message_of("{}\n"), name_ + ":1: device is missing; expected the name of a GPU");
    EXPECT_EQ(message_of("{\"device\":7}\n"), name_ + ":1: device is 7; expected the name of a GPU");
    EXPECT_EQ(message_of(with("async_store", "tile_7x7")),
              name_ +
                  ":2: tile is \"tile_7x7\"; expected one of async_store, tile_192x192, tile_128x128, "
                  "tile_64x128, tile_128x64, tile_64x64, split_k, split_2_64x128, split_4_64x128, "
                  "split_4_64x64, split_8_64x64");
    EXPECT_EQ(message_of(with("\"launch\":2.0", "\"launch\":-2.0")),
              name_ + ":2: launch is -2.0; expected microseconds, at least 0");
    EXPECT_EQ(message_of(with("\"load\":0.5", "\"lead\":0.5")),
              name_ + ":2: load is missing; expected microseconds, at least 0");
    EXPECT_EQ(message_of(with("tile_192x192", "async_store")),
              name_ + ":3: tile async_store is here twice; expected once");
    EXPECT_EQ(message_of(good.substr(0, good.rfind("{\"tile"))),
              name_ +
                  ":12: there is no line with tile \"split_8_64x64\"; expected one for each of the 11 tiles, "
                  "after one with the device");
}

}  // namespace
