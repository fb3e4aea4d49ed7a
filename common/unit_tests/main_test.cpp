// common/test/main.cpp: what it reports of troubled_program.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/test/shell_run.hpp"

namespace {

struct Report {
    int exit_code = 0;
    std::map<std::string, std::string> results;
    std::map<std::string, std::string> messages;
    std::string printed;
};

Report run_program(const std::string& settings, const std::string& arguments = "") {
    const std::string file = testing::TempDir() + "main_test_" + std::to_string(getpid()) + ".jsonl";
    const course::ShellOutcome outcome = course::run_in_shell(
        "COURSE_TEST_REPORT=" + file + " " + settings + " " + COURSE_TROUBLED_PROGRAM + " " + arguments);
    Report report{.exit_code = outcome.exit_code, .results = {}, .messages = {}, .printed = outcome.text};
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        const std::string test = event.at("test");
        if (event.at("event") == "started") {
            EXPECT_EQ(report.results.count(test), 0u) << test << " ran twice";
            continue;
        }
        EXPECT_EQ(report.results.count(test), 0u) << test << " ended twice";
        report.results[test] = event.at("result");
        report.messages[test] = event.value("message", "");
    }
    std::remove(file.c_str());
    return report;
}

using Results = std::map<std::string, std::string>;

TEST(TestMain, NamesTheTestThatCrashesOrHangsAndRunsTheOthers) {
    const Report report = run_program("COURSE_TEST_LIMIT=1");
    EXPECT_EQ(report.exit_code, 1);
    EXPECT_EQ(report.results, (Results{{"First.Passes", "passed"},
                                       {"First.Fails", "failed"},
                                       {"First.IsSkipped", "skipped"},
                                       {"Second.Crashes", "failed"},
                                       {"Second.Exits", "failed"},
                                       {"Second.Hangs", "failed"},
                                       {"Third.PassesAfterwards", "passed"}}));
    const std::string& failure = report.messages.at("First.Fails");
    EXPECT_NE(failure.find("troubled_program.cpp:14: Expected equality"), std::string::npos) << failure;
    EXPECT_NE(failure.find("\"one\" \xef\xbf\xbd"), std::string::npos) << failure;
    EXPECT_EQ(report.messages.at("First.IsSkipped"), "needs luck");
    EXPECT_EQ(report.messages.at("Second.Crashes"), "crashed: Segmentation fault\nwords before the end\n");
    EXPECT_EQ(report.messages.at("Second.Exits"), "ended the program with exit code 0\n");
    EXPECT_EQ(report.messages.at("Second.Hangs"), "did not end within 1 s\n");
    EXPECT_NE(report.printed.find("words before the end"), std::string::npos) << report.printed;
}

TEST(TestMain, PartsAreTheWholeAndGoOnAfterACrash) {
    Results all;
    for (const char* part : {"0", "1", "2"}) {
        const Report report =
            run_program(std::string("COURSE_TEST_LIMIT=1 GTEST_TOTAL_SHARDS=3 GTEST_SHARD_INDEX=") + part);
        EXPECT_GE(report.results.size(), 2u);
        for (const auto& [test, result] : report.results)
            EXPECT_TRUE(all.emplace(test, result).second) << test << " is in two parts";
    }
    EXPECT_EQ(all.size(), 7u);
    EXPECT_EQ(all.count("Third.PassesAfterwards"), 1u);
}

TEST(TestMain, EachTestCanHaveAProcessOfItsOwn) {
    const Report report = run_program("COURSE_TEST_LIMIT=1 COURSE_TEST_ALONE=1");
    EXPECT_EQ(report.exit_code, 1);
    EXPECT_EQ(report.results, run_program("COURSE_TEST_LIMIT=1").results);
    std::size_t processes = 0;
    for (auto at = report.printed.find("Running 1 test from"); at != std::string::npos;
         at = report.printed.find("Running 1 test from", at + 1))
        ++processes;
    EXPECT_EQ(processes, 7u) << report.printed;
}

TEST(TestMain, AFilterTurnsTheReportOff) {
    const Report report = run_program("", "--gtest_filter='*.Passes*'");
    EXPECT_EQ(report.exit_code, 0);
    EXPECT_TRUE(report.results.empty());
}

}  // namespace
