#include "common/bench/record_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::ordered_json;
using course::from_json_lines;
using course::to_json_lines;

Json record(const char* version, const char* device = "NVIDIA H200", const char* commit = "abc") {
    return {{"day", "day01_vector_add"},   {"version", version}, {"median_ms", 0.25},
            {"percent_of_limit", nullptr}, {"device", device},   {"commit", commit}};
}

// The same JSON with sorted keys, so that comparisons ignore their order.
nlohmann::json sorted(const Json& json) {
    return nlohmann::json::parse(json.dump());
}

std::string error_of(const char* text) {
    try {
        from_json_lines(text);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "no error";
}

TEST(RecordFile, TheFirstLineHoldsWhatMostRecordsHaveInCommon) {
    EXPECT_EQ(to_json_lines({record("openmp", "host CPU"), record("a"), record("b"),
                             record("c", "NVIDIA H200", "def")}),
              R"({"format":"course records 1","day":"day01_vector_add","device":"NVIDIA H200","commit":"abc"}
{"version":"openmp","median_ms":0.25,"percent_of_limit":null,"device":"host CPU"}
{"version":"a","median_ms":0.25,"percent_of_limit":null}
{"version":"b","median_ms":0.25,"percent_of_limit":null}
{"version":"c","median_ms":0.25,"percent_of_limit":null,"commit":"def"}
)");
}

TEST(RecordFile, WhatIsWrittenIsReadAgain) {
    const Json records = {record("a"), record("b", "host CPU"), record("c", "NVIDIA H200", "def")};
    EXPECT_EQ(sorted(from_json_lines(to_json_lines(records))), sorted(records));
    EXPECT_TRUE(from_json_lines(to_json_lines(Json::array())).empty());
}

// Otherwise the record would get the header's value.
TEST(RecordFile, AKeyThatOneRecordLacksIsNotInTheHeader) {
    Json without = record("b");
    without.erase("commit");
    const Json records = {record("a"), without};
    EXPECT_EQ(sorted(from_json_lines(to_json_lines(records))), sorted(records));
}

// The lines of the device keep every byte, here a space that no record written by us has.
TEST(RecordFile, NewRecordsOfTheHostReplaceOnlyThoseOfTheHost) {
    constexpr const char* kFile =
        R"({"format":"course records 1","device":"NVIDIA H200","commit":"abc"}
{"problem":"p","version":"a", "median_ms":1}
{"problem":"p","version":"cpu_openmp","device":"host CPU"}
{"problem":"q","version":"cpu_openmp","device":"host CPU"}
{"problem":"p","version":"cub"}
)";
    const Json fresh = {
        {{"problem", "p"}, {"version", "plain_loop_1_thread"}, {"device", "host CPU"}, {"commit", "def"}}};
    EXPECT_EQ(course::with_records_of_host(kFile, fresh),
              R"({"format":"course records 1","device":"NVIDIA H200","commit":"abc"}
{"problem":"p","version":"a", "median_ms":1}
{"problem":"q","version":"cpu_openmp","device":"host CPU"}
{"problem":"p","version":"cub"}
{"problem":"p","version":"plain_loop_1_thread","device":"host CPU","commit":"def"}
)");
    EXPECT_EQ(course::with_records_of_host("", fresh), to_json_lines(fresh));
    EXPECT_THROW(course::with_records_of_host("7\n", fresh), std::runtime_error);
}

TEST(RecordFile, MistakesAreNamedWithTheirLine) {
    constexpr const char* kHeader = "{\"format\":\"course records 1\"}\n";
    EXPECT_NE(error_of("[\n{}\n]\n").find("line 1: "), std::string::npos);
    EXPECT_NE(error_of("{\"version\":\"a\"}\n").find("line 1: expected the header"), std::string::npos);
    EXPECT_NE(error_of((std::string(kHeader) + "{}\n7\n").c_str()).find("line 3: expected an object"),
              std::string::npos);
    EXPECT_NE(error_of((std::string(kHeader) + "{\"a\":1\n").c_str()).find("line 2: "), std::string::npos);
    EXPECT_NE(error_of((std::string(kHeader) + "\n").c_str()).find("line 2: "), std::string::npos);
}

}  // namespace
