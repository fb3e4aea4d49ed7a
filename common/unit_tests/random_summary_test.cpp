#include "common/bench/random_summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using course::quantile;
using course::RandomResult;
using course::RandomRun;

std::vector<double> downwards_from(int n) {
    std::vector<double> values(static_cast<std::size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1.0);
    return values;
}

TEST(RandomSummaryTest, AQuantileIsOneOfTheValuesByNearestRank) {
    EXPECT_EQ(quantile(downwards_from(1), 5), 1);
    EXPECT_EQ(quantile(downwards_from(2), 5), 1);
    EXPECT_EQ(quantile(downwards_from(20), 5), 1) << "1 of 20 is 5 %";
    EXPECT_EQ(quantile(downwards_from(21), 5), 2) << "1 of 21 is less";
    EXPECT_EQ(quantile(downwards_from(200), 5), 10);
    EXPECT_EQ(quantile(downwards_from(3), 50), 2);
    EXPECT_EQ(quantile(downwards_from(3), 100), 3);
    EXPECT_THROW(quantile({}, 5), std::invalid_argument);
    EXPECT_THROW(quantile(downwards_from(3), 0), std::invalid_argument);
    EXPECT_THROW(quantile(downwards_from(3), 101), std::invalid_argument);
}

RandomResult timed(std::size_t index, const std::string& kind, double ours_ms, double peer_ms) {
    return {.index = index,
            .kind = kind,
            .size = {index + 1},
            .problem = "sum " + std::to_string(index + 1),
            .ours = "single_pass",
            .ours_ms = ours_ms,
            .peer = "cub",
            .peer_ms = peer_ms};
}

RandomRun run_of(std::vector<RandomResult> results) {
    return {.day = "day15_reduction",
            .distribution = "sums",
            .text = "",
            .seed = 7,
            .limit = 100,
            .results = std::move(results)};
}

TEST(RandomSummaryTest, TheSummaryHasMeanQuantileLowestAndTheWorst) {
    EXPECT_EQ(
        course::summary_of(run_of({timed(0, "any", 1, 2), timed(1, "tiny", 4, 2), timed(2, "any", 1, 8)})),
        "\nday15_reduction, sums, seed 7: 3 of 3 problems right\n"
        "  peer/ours on 3 problems, warm: geometric mean 2.000, 5 % quantile 0.500, lowest 0.500\n"
        "    any: 2 problems, geometric mean 4.000, lowest 2.000\n"
        "    tiny: 1 problem, geometric mean 0.500, lowest 0.500\n"
        "  the worst 3:\n"
        "    0.500  single_pass 4 ms, cub 2 ms; problem 1: sum 2; tiny\n"
        "    2.000  single_pass 1 ms, cub 2 ms; problem 0: sum 1; any\n"
        "    8.000  single_pass 1 ms, cub 8 ms; problem 2: sum 3; any\n");
}

TEST(RandomSummaryTest, OfManyProblemsTheWorstTenAreListed) {
    std::vector<RandomResult> results;
    for (std::size_t i = 0; i < 40; ++i)
        results.push_back(timed(i, "any", 1, 40 - static_cast<double>(i)));
    const std::string text = course::summary_of(run_of(results));
    EXPECT_NE(text.find("5 % quantile 2.000, lowest 1.000"), std::string::npos) << text;
    EXPECT_NE(text.find("the worst 10:\n    1.000  single_pass 1 ms, cub 1 ms; problem 39"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("problem 30"), std::string::npos) << text;
    EXPECT_EQ(text.find("problem 29"), std::string::npos) << text;
}

TEST(RandomSummaryTest, WhatFailedOrCannotRunIsCountedAndNotCompared) {
    RandomResult failed = timed(1, "any", 1, 1000);
    failed.failure = "1 of 2 differ";
    RandomResult refused = timed(2, "any", 0, 0);
    refused.cannot_run = "needs Hopper";
    RandomResult alone = timed(3, "any", 1, 0);
    alone.no_peer = "no cuBLAS";
    const RandomRun run = run_of({timed(0, "any", 1, 3), failed, refused, alone});
    const std::string text = course::summary_of(run);
    EXPECT_NE(text.find("2 of 4 problems right, 1 FAILED\n"), std::string::npos) << text;
    EXPECT_NE(text.find("1 of 4 problems are refused by ours: needs Hopper (1)\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("1 of 4 problems have nothing to compare with: no cuBLAS (1)\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("on 1 problem, warm: geometric mean 3.000"), std::string::npos) << text;
    const std::string of_one = course::summary_of(run_of({alone}));
    EXPECT_NE(of_one.find("\n  all problems have nothing to compare with: no cuBLAS\n"), std::string::npos)
        << of_one;
    EXPECT_EQ(course::text_of(failed), "FAILED: 1 of 2 differ\n");
    EXPECT_EQ(course::text_of(refused), "cannot run: needs Hopper\n");
    EXPECT_EQ(course::text_of(alone), "single_pass is right, 1 ms\n");
}

TEST(RandomSummaryTest, OfManyReasonsFourAreShown) {
    std::vector<RandomResult> results = {timed(0, "any", 1, 3)};
    for (std::size_t i = 1; i <= 6; ++i) {
        results.push_back(timed(i, "any", 0, 0));
        results.back().cannot_run = "reason " + std::to_string(i);
    }
    const std::string text = course::summary_of(run_of(results));
    EXPECT_NE(
        text.find("  6 of 7 problems are refused by ours: reason 1 (1), reason 2 (1), reason 3 (1), reason 4 "
                  "(1), and 2 other reasons\n"),
        std::string::npos)
        << text;
}

TEST(RandomSummaryTest, EachProblemIsALineOfJson) {
    RandomResult failed = timed(1, "any", 0, 0);
    failed.failure = "1 of 2 differ";
    const RandomRun run = run_of({timed(0, "any", 2, 3), failed});
    const course::Machine machine{.device = "NVIDIA H200", .slug = "h200", .driver = "1", .cuda = "13.0"};
    std::istringstream lines(course::to_json_lines(run, machine, "1a2b3c4d5e6f", "2026-11-30T00:00:00Z"));
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(nlohmann::json::parse(line),
              nlohmann::json::parse(R"({"format":"course random problems 1","day":"day15_reduction",
                  "distribution":"sums","seed":7,"index":0,"limit":100,"kind":"any","size":[1],
                  "problem":"sum 1","version":"single_pass","right":true,"median_ms":2.0,"peer":"cub",
                  "peer_median_ms":3.0,"ratio":1.5,"device":"NVIDIA H200","driver":"1","cuda":"13.0",
                  "commit":"1a2b3c4d5e6f","date":"2026-11-30T00:00:00Z"})"));
    ASSERT_TRUE(std::getline(lines, line));
    const nlohmann::json second = nlohmann::json::parse(line);
    EXPECT_EQ(second.at("right"), false);
    EXPECT_EQ(second.at("failure"), "1 of 2 differ");
    EXPECT_FALSE(second.contains("median_ms"));
    EXPECT_FALSE(second.contains("ratio"));
    EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
