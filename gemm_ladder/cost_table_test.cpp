// Tables of costs: written, read, refused; and a choice that follows from the table.
#include "beyond/cost_table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using gemm::CostTable;
using gemm::Shape;

const gemm::Gpu kH200 = {132, 90, 1'980'000, {64, 32, 65536, 228 << 10, 227 << 10, 1 << 10}};

class CostTables : public testing::Test {
  protected:
    ~CostTables() override { std::filesystem::remove(file_); }

    const std::filesystem::path& written(const std::string& text) const {
        std::ofstream(file_) << text;
        return file_;
    }
    // The message of read_cost_table() without the directory of the file.
    std::string message_of(const std::string& text) const {
        try {
            gemm::read_cost_table(written(text));
        } catch (const std::runtime_error& error) {
            const std::string message = error.what();
            const std::string directory = file_.parent_path().string() + "/";
            EXPECT_EQ(message.find(directory), 0u) << message;
            return message.substr(std::min(message.size(), directory.size()));
        }
        return "accepted";
    }
    std::string name() const { return file_.filename().string(); }

  private:
    std::filesystem::path file_ =
        std::filesystem::temp_directory_path() / ("cost_table_test_" + std::to_string(getpid()) + ".jsonl");
};

// Large tiles a hundred times as slow, on a GPU of another name.
CostTable without_large_tiles() {
    CostTable table = gemm::shipped_costs();
    table.device = "Another GPU";
    for (gemm::TileCost& cost : table.costs) {
        if (cost.name == "32x32x16") continue;
        for (auto* const costs : {&cost.whole_step, &cost.shared_step})
            for (double& value : *costs)
                value *= 100;
    }
    return table;
}

TEST_F(CostTables, TheShippedOneSurvivesAFile) {
    const CostTable& shipped = gemm::shipped_costs();
    const CostTable read = gemm::read_cost_table(written(gemm::to_json_lines(shipped)));
    EXPECT_EQ(read.device, shipped.device);
    EXPECT_EQ(read.capability, shipped.capability);
    EXPECT_EQ(read.clock_khz, shipped.clock_khz);
    ASSERT_EQ(read.costs.size(), shipped.costs.size());
    for (const Shape& shape : {Shape{128, 128, 128}, Shape{1536, 1536, 1536}, Shape{96, 4096, 4096}}) {
        for (const bool aligned : {false, true}) {
            const gemm::Choice from_file = gemm::choose(shape, aligned, kH200, read);
            const gemm::Choice from_source = gemm::choose(shape, aligned, kH200);
            EXPECT_EQ(from_file.tile, from_source.tile);
            EXPECT_EQ(from_file.shared_by, from_source.shared_by);
            EXPECT_EQ(from_file.microseconds, from_source.microseconds);
        }
    }
}

TEST_F(CostTables, TheChoiceFollowsFromTheTable) {
    const Shape shape{4096, 4096, 4096};
    EXPECT_EQ(gemm::choose(shape, true, kH200, gemm::shipped_costs()).tile->name, "128x256x8");
    const CostTable read = gemm::read_cost_table(written(gemm::to_json_lines(without_large_tiles())));
    EXPECT_EQ(gemm::choose(shape, true, kH200, read).tile->name, "32x32x16");
}

TEST_F(CostTables, OnlyATableOfTheDeviceIsUsed) {
    const std::filesystem::path& file = written(gemm::to_json_lines(without_large_tiles()));
    EXPECT_EQ(gemm::costs_for("Another GPU", file).device, "Another GPU");
    EXPECT_EQ(gemm::costs_for("NVIDIA A100", file).device, gemm::shipped_costs().device);
    std::filesystem::remove(file);
    EXPECT_EQ(gemm::costs_for("Another GPU", file).device, gemm::shipped_costs().device);
}

TEST_F(CostTables, AMalformedOneIsRefused) {
    const std::string good = gemm::to_json_lines(gemm::shipped_costs());
    // The second line, the first of a tile, with `from` replaced.
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t place = text.find(from, text.find('\n'));
        EXPECT_NE(place, std::string::npos) << from;
        return text.replace(place, from.size(), to);
    };
    // The first value of `key`, which was measured, replaced.
    const auto with_value = [&](const std::string& key, const std::string& to) {
        const std::size_t begin = good.find("\"" + key + "\":") + key.size() + 3;
        const std::size_t end =
            good[begin] == '[' ? good.find(']', begin) + 1 : good.find_first_of(",}", begin);
        EXPECT_LT(begin, end);
        return std::string(good).replace(begin, end - begin, to);
    };
    EXPECT_EQ(message_of(good), "accepted");
    EXPECT_EQ(message_of("{\n"),
              name() + ":1: \"{\" is not JSON; expected a line that ./course tune has written");
    EXPECT_EQ(message_of("[]\n"), name() + ":1: [] is no object; expected {...}");
    EXPECT_EQ(message_of("{}\n"), name() + ":1: device is missing; expected the name of a GPU");
    EXPECT_EQ(message_of(R"({"device":"x","capability":9.5,"clock_khz":1})"),
              name() + ":1: capability is 9.5; expected a number such as 90, for 9.0");
    EXPECT_EQ(message_of(R"({"device":"x","capability":90,"clock_khz":0})"),
              name() + ":1: clock_khz is 0; expected at least 1");
    EXPECT_EQ(message_of(with("128x256x8", "128x257x8")),
              name() +
                  ":2: tile is \"128x257x8\"; expected one of 128x256x8, 128x128x8, 64x128x16, 64x64x16, "
                  "128x32x16, 32x128x16, 32x32x16");
    EXPECT_EQ(message_of(with_value("whole_step", "[-1.5]")),
              name() + ":2: whole_step is [-1.5]; expected 1 numbers greater than 0");
    EXPECT_EQ(message_of(with_value("whole_step", "[1.5,2.5]")),
              name() + ":2: whole_step is [1.5,2.5]; expected 1 numbers greater than 0");
    EXPECT_EQ(message_of(with_value("owner", "-1")),
              name() + ":2: owner is -1; expected a number of at least 0");
    EXPECT_EQ(message_of(with("true", "1")), name() + ":2: aligned is 1; expected true or false");
    EXPECT_EQ(message_of(with("32x128x16", "128x32x16")),
              name() + ":7: tile 128x32x16 with aligned true is here twice; expected once");
    EXPECT_EQ(message_of(good.substr(0, good.rfind("{\"tile"))),
              name() +
                  ":15: there is no line with tile \"32x32x16\" and aligned false; expected one for each of "
                  "the 7 tiles, aligned and not, after one with the device");
    EXPECT_EQ(message_of(""),
              name() +
                  ":1: there is no line with tile \"128x256x8\" and aligned true; expected one "
                  "for each of the 7 tiles, aligned and not, after one with the device");
}

}  // namespace
