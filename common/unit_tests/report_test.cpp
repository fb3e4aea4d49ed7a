#include "common/bench/report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/bench/build_info.hpp"

namespace {

using course::Record;

Record measured() {
    Record record;
    record.day = "day01_vector_add";
    record.problem = "vector_add 1024";
    record.version = "float4";
    record.dtype = "float";
    record.measurement = course::Measurement{.ms = {.count = 12, .median = 2.0, .spread = 0.1, .min = 1.9},
                                             .launches_per_repeat = 3};
    record.work = {.bytes = 12e9, .flops = 1e9, .requested = 24e9};
    record.percent_of_limit = 97.5;
    record.limit_bytes_per_second = 4e12;
    record.limit_flops_per_second = 6e13;
    record.verified = true;
    record.max_error = 1e-7;
    return record;
}

const course::Machine kMachine = {.device = "NVIDIA H200", .slug = "h200", .driver = "580.1", .cuda = "13.0"};

nlohmann::ordered_json json_of(const Record& record) {
    return course::to_json(std::vector{record}, kMachine, "abc", "2026-11-21T10:00:00Z").at(0);
}

TEST(Report, JsonHasTheRecordOfTheDesign) {
    const nlohmann::ordered_json expected = nlohmann::ordered_json::parse(R"({
        "day": "day01_vector_add", "problem": "vector_add 1024", "version": "float4", "role": "ours", "dtype": "float",
        "median_ms": 2.0, "spread_ms": 0.1, "min_ms": 1.9, "repeats": 12, "launches_per_repeat": 3,
        "stopped_by": "precise", "l2": "warm", "bytes": 12e9, "flops": 1e9, "requested_bytes": 24e9,
        "percent_of_limit": 97.5, "limit_bytes_per_second": 4e12, "limit_flops_per_second": 6e13, "verified": true, "max_error": 1e-7,
        "device": "NVIDIA H200", "driver": "580.1", "cuda": "13.0", "compiler": ")" +
                                                                          course::compiler() +
                                                                          R"(", "commit": "abc",
        "date": "2026-11-21T10:00:00Z"})");
    EXPECT_EQ(json_of(measured()), expected);
}

TEST(Report, WhatIsNotKnownIsNull) {
    Record record = measured();
    record.percent_of_limit = std::nullopt;
    record.verified = std::nullopt;
    record.max_error = HUGE_VAL;
    const auto json = json_of(record);
    EXPECT_TRUE(json.at("percent_of_limit").is_null());
    EXPECT_TRUE(json.at("verified").is_null());
    EXPECT_TRUE(json.at("max_error").is_null());
}

TEST(Report, WhatWasNotRunIsNotRecorded) {
    Record record = measured();
    record.cannot_run = "n must be even";
    record.measurement.reset();
    EXPECT_TRUE(course::to_json(std::vector{record}, kMachine, "abc", "now").empty());
    const std::string table = course::table(std::vector{record}, false);
    EXPECT_NE(table.find("not run"), std::string::npos) << table;
    EXPECT_NE(table.find("float4: n must be even"), std::string::npos) << table;
    EXPECT_FALSE(record.failed());
}

TEST(Report, TableColumnsAreAligned) {
    Record longer = measured();
    longer.version = "a much longer name";
    longer.measurement->ms.median = 1234;
    const std::string table = course::table(std::vector{measured(), longer}, false);
    EXPECT_EQ(table.find('\033'), std::string::npos) << "no colour unless asked for";
    EXPECT_NE(table.find("6000"), std::string::npos) << "12 GB in 2 ms:\n" << table;
    std::size_t begin = 0;
    std::vector<std::size_t> lengths;
    while (begin < table.size()) {
        const std::size_t end = table.find('\n', begin);
        lengths.push_back(end - begin);
        begin = end + 1;
    }
    ASSERT_EQ(lengths.size(), 3u);
    EXPECT_EQ(lengths[0], lengths[1]);
    EXPECT_EQ(lengths[0], lengths[2]);
}

TEST(Report, AnImpossibleTimeIsRedAndShowsNoRate) {
    Record record = measured();
    record.violation = "more than the 4000 GB/s measured here";
    record.percent_of_limit = std::nullopt;
    EXPECT_TRUE(record.failed());
    const std::string table = course::table(std::vector{record}, true);
    EXPECT_NE(table.find("\033[31mIMPOSSIBLE"), std::string::npos) << table;
    EXPECT_EQ(table.find("6000"), std::string::npos) << table;
}

TEST(Report, AWrongResultFails) {
    Record record = measured();
    record.verified = false;
    EXPECT_TRUE(record.failed());
    EXPECT_NE(course::table(std::vector{record}, false).find("WRONG"), std::string::npos);
}

const course::KernelResources kResources = {.threads = 256,
                                            .registers = 128,
                                            .local_bytes = 8,
                                            .shared_bytes = 33 * 1024,
                                            .blocks = 2,
                                            .occupancy = 0.25,
                                            .limit = "registers"};

TEST(Report, WithoutRegistersTheOccupancyIsNotKnown) {
    Record on_cpu = measured();
    on_cpu.resources = kResources;
    on_cpu.resources->registers = 0;
    const std::string table = course::table(std::vector{on_cpu}, false);
    EXPECT_NE(table.find("        -   33 KB          -  -               ok\n"), std::string::npos) << table;
}

TEST(Report, WhatAKernelTakesIsShownWhereItIsKnown) {
    Record known = measured();
    known.resources = kResources;
    const std::string with = course::table(std::vector{known, measured()}, false);
    EXPECT_NE(with.find("registers  shared  occupancy  limited by  result"), std::string::npos) << with;
    EXPECT_NE(with.find("      128   33 KB       25 %  registers       ok\n"), std::string::npos) << with;
    EXPECT_NE(with.find("        -       -          -  -               ok\n"), std::string::npos) << with;
    EXPECT_EQ(course::table(std::vector{measured()}, false).find("registers"), std::string::npos);

    EXPECT_EQ(json_of(known).at("kernel"), nlohmann::ordered_json::parse(R"({"threads": 256, "registers": 128,
        "local_bytes": 8, "shared_bytes": 33792, "blocks_per_multiprocessor": 2, "occupancy": 0.25, "limited_by": "registers"})"));
    EXPECT_FALSE(json_of(measured()).contains("kernel"));
}

TEST(Report, FiguresAreColumnsOfTheirOwn) {
    Record first = measured();
    first.figures = {{"relative error", 0.012345}, {"outliers", 5}};
    Record second = measured();
    second.figures = {{"outliers", 1234}};
    const std::string with = course::table(std::vector{first, measured(), second}, false);
    EXPECT_NE(with.find("relative error  outliers  result"), std::string::npos) << with;
    EXPECT_NE(with.find("        0.0123         5      ok\n"), std::string::npos) << with;
    EXPECT_NE(with.find("             -         -      ok\n"), std::string::npos) << with;
    EXPECT_NE(with.find("             -      1234      ok\n"), std::string::npos) << with;

    EXPECT_EQ(json_of(first).at("figures"),
              nlohmann::ordered_json::parse(R"([["relative error", 0.012345], ["outliers", 5.0]])"));
    EXPECT_FALSE(json_of(measured()).contains("figures"));

    Record infinite = measured();
    infinite.figures = {{"relative error", std::numeric_limits<double>::infinity()}};
    EXPECT_NE(course::table(std::vector{infinite}, false).find("             -      ok\n"),
              std::string::npos);
    EXPECT_EQ(json_of(infinite).at("figures"),
              nlohmann::ordered_json::parse(R"([["relative error", null]])"));
}

TEST(Report, LargeRatesAreInTeraflops) {
    Record fast = measured();
    fast.work.flops = 12345e9 * 2e-3;
    const std::string giga = course::table(std::vector{measured()}, false);
    EXPECT_NE(giga.find(" GFLOP/s"), std::string::npos) << giga;
    const std::string tera = course::table(std::vector{measured(), fast}, false);
    EXPECT_NE(tera.find(" TFLOP/s"), std::string::npos) << tera;
    EXPECT_NE(tera.find(" 12.35 "), std::string::npos) << tera;
    fast.work.bytes = 123456e9 * 2e-3;
    EXPECT_NE(course::table(std::vector{fast}, false).find(" 123456 "), std::string::npos) << "no exponent";
}

Record peer(const char* version, double ms, course::L2State l2 = course::L2State::kWarm) {
    Record record = measured();
    record.role = course::Role::kPeer;
    record.version = version;
    record.measurement->ms.median = ms;
    record.measurement->l2 = l2;
    return record;
}

TEST(Report, ComparesWithTheOnePeer) {
    const Record cublas = peer("cublas", 1.5);
    const Record cold = peer("cublas", 9, course::L2State::kFlushed);
    const std::string one = course::table(std::vector{cold, cublas, measured()}, false);
    EXPECT_NE(one.find("% of cublas"), std::string::npos) << one;
    EXPECT_NE(one.find("         75.0 "), std::string::npos) << "1.5 ms beside 2 ms, both warm:\n" << one;

    const auto compares = [](const std::vector<Record>& records) {
        return course::table(records, false).find("% of c") != std::string::npos;
    };
    EXPECT_FALSE(compares({cublas, peer("cub", 1.6), measured()})) << "two peers";
    Record on_host = cublas;
    on_host.device = "host CPU";
    EXPECT_FALSE(compares({on_host, measured()}));
    Record not_run = cublas;
    not_run.measurement.reset();
    EXPECT_FALSE(compares({not_run, measured()}));
}

TEST(Report, ColourNeedsATerminalAndRespectsNoColor) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    EXPECT_FALSE(course::use_colour(file));
    std::fclose(file);
}

class WriteFile : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::remove_all(directory_); }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    const std::filesystem::path directory_ =
        std::filesystem::path(testing::TempDir()) /
        ("course_report_test_" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) + "_" +
         testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(WriteFile, MakesDirectoriesAndReplacesWhatWasThere) {
    const auto path = directory_ / "h200" / "day.json";
    course::write_file(path, "old");
    course::write_file(path, "new");
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "new");
    const auto entries = std::distance(std::filesystem::directory_iterator(path.parent_path()), {});
    EXPECT_EQ(entries, 1) << "no temporary file may be left behind";
}

TEST_F(WriteFile, FailureNamesTheFile) {
    course::write_file(directory_ / "file", "in the way");
    const auto path = directory_ / "file" / "day.json";
    try {
        course::write_file(path, "text");
        FAIL() << "expected std::runtime_error";
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("cannot write '" + path.string() + "': "), std::string::npos)
            << error.what();
    }
    EXPECT_THROW(course::write_file("/proc/nowhere.json", "text"), std::runtime_error);
}

}  // namespace
