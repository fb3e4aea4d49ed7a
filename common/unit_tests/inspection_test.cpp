#include "common/bench/inspection.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace {

using course::InspectionFile;
using course::Operation;
using course::Space;

InspectionFile example() {
    course::AccessLine line{.source = {"day05_matmul_tiled/matmul_tiled.cu", 93},
                            .space = Space::kShared,
                            .operation = Operation::kAtomic,
                            .bytes = 4,
                            .requests = 10,
                            .transactions = 20,
                            .ideal = 10,
                            .active_lanes = 300,
                            .bytes_used = 1200,
                            .worst = {.transactions = 4,
                                      .active_lanes = 2,
                                      .block = {1, 2, 3},
                                      .warp = 5,
                                      .offsets = {0, 128, -1},
                                      .array = "tile"}};
    course::Finding race{.kind = "race",
                         .source = {"a.cu", 7},
                         .message = "message",
                         .why = "why",
                         .block = {1, 0, 0},
                         .thread = {2, 0, 0},
                         .other = course::SourceLine{"a.cu", 9},
                         .other_block = {1, 0, 0},
                         .other_thread = {3, 0, 0},
                         .count = 12};
    course::Finding alone = race;
    alone.other.reset();
    alone.other_block = alone.other_thread = {};
    return {.day = "day05_matmul_tiled",
            .commit = "abc",
            .results = {{.problem = "matmul 64x64x64",
                         .version = "tiled_static",
                         .verified = true,
                         .flops = 5e9,
                         .seconds = 0.25,
                         .awaited_copies = 2,
                         .awaited_copy_bytes = 8,
                         .kernels = {{.name = "multiply_tiled [with int TILE = 32]",
                                      .launches = 1,
                                      .blocks = 4,
                                      .inspected_blocks = 3,
                                      .threads_per_block = 1024,
                                      .static_shared = 8192,
                                      .dynamic_shared = 16,
                                      .barriers = 16,
                                      .dropped_accesses = 3,
                                      .all_memory_watched = false,
                                      .global_read_bytes = 5'000'000'000,
                                      .global_written_bytes = 6,
                                      .unique_read_bytes = 7,
                                      .unique_written_bytes = 8,
                                      .lines = {line},
                                      .findings = {race, alone}}}},
                        {.problem = "matmul 64x64x64", .version = "wide", .cannot_run = "too small"}}};
}

TEST(InspectionJson, ReadsWhatItWrote) {
    const InspectionFile file = example();
    const auto text = to_json(file).dump();
    EXPECT_EQ(course::inspection_file_from_json(nlohmann::ordered_json::parse(text)), file);
}

TEST(InspectionJson, HasTheNamesThatAreInTheReadme) {
    const auto json = to_json(example());
    const auto& kernel = json.at("results").at(0).at("kernels").at(0);
    EXPECT_EQ(kernel.at("lines").at(0).at("space"), "shared");
    EXPECT_EQ(kernel.at("lines").at(0).at("operation"), "atomic");
    EXPECT_EQ(kernel.at("lines").at(0).at("worst").at("offsets"), nlohmann::json({0, 128, -1}));
    EXPECT_EQ(kernel.at("findings").at(0).at("other").at("line"), 9);
    EXPECT_FALSE(kernel.at("findings").at(1).contains("other"));
}

TEST(InspectionJson, SaysWhatIsWrongWithAFile) {
    const auto message = [](const nlohmann::ordered_json& json) {
        try {
            course::inspection_file_from_json(json);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    auto json = to_json(example());
    json.erase("day");
    EXPECT_NE(message(json).find("day"), std::string::npos);
    json = to_json(example());
    json["results"][0]["kernels"][0]["lines"][0]["space"] = "local";
    EXPECT_NE(message(json).find("'local' is no space"), std::string::npos);
    json = to_json(example());
    json["results"][0]["kernels"][0]["launches"] = "many";
    EXPECT_NE(message(json), "");
}

TEST(Inspection, SaysWhyABuildCannot) {
    if (course::why_no_inspection().empty()) GTEST_SKIP() << "this build inspects";
    EXPECT_NE(course::why_no_inspection().find("cmake --preset inspect"), std::string::npos);
    EXPECT_THROW(course::inspect([] {}), std::logic_error);
}

}  // namespace
