// Tests the reports of common/test/main.cpp for troubled_program.cpp.
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
    std::map<std::string, nlohmann::json> failures;  // the first failure of each test
    nlohmann::json finished;
    std::string printed;
};

Report run_program(const std::string& settings, const std::string& arguments = "") {
    const std::string file = testing::TempDir() + "main_test_" + std::to_string(getpid()) + ".jsonl";
    const course::ShellOutcome outcome = course::run_in_shell(
        "COURSE_TEST_REPORT=" + file + " " + settings + " " + COURSE_TROUBLED_PROGRAM + " " + arguments);
    Report report;
    report.exit_code = outcome.exit_code;
    report.printed = outcome.text;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(report.finished.is_null()) << "not the last line";
        const auto event = nlohmann::json::parse(line);
        if (event.at("event") == "finished") {
            report.finished = event;
            continue;
        }
        const std::string test = event.at("test");
        if (event.at("event") == "started") {
            EXPECT_EQ(report.results.count(test), 0u) << test << " ran twice";
            continue;
        }
        if (event.at("event") == "failure") {
            report.failures.emplace(test, event);
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
    const nlohmann::json& failure = report.failures.at("First.Fails");
    EXPECT_TRUE(std::string(failure.at("file")).ends_with("troubled_program.cpp")) << failure;
    EXPECT_EQ(failure.at("line"), 22);
    EXPECT_EQ(failure.at("message"), "Expected equality of these values:\n  1\n  2\n\"one\" \xef\xbf\xbd");
    EXPECT_EQ(report.messages.at("First.Fails"), "");
    EXPECT_EQ(report.messages.at("First.IsSkipped"), "needs luck");
    EXPECT_EQ(report.messages.at("Second.Crashes"), "crashed: Segmentation fault\nwords before the end\n");
    EXPECT_EQ(report.messages.at("Second.Exits"), "ended the program with exit code 0\n");
    EXPECT_EQ(report.messages.at("Second.Hangs"), "did not end within 1 s\n");
    EXPECT_NE(report.printed.find("words before the end"), std::string::npos) << report.printed;
    EXPECT_EQ(report.finished, (nlohmann::json{{"event", "finished"}, {"result", "failed"}}));
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

TEST(TestMain, AFilterChoosesWhatIsReported) {
    const Report passed = run_program("", "--gtest_filter='*.Passes*'");
    EXPECT_EQ(passed.exit_code, 0);
    EXPECT_EQ(passed.results, (Results{{"First.Passes", "passed"}, {"Third.PassesAfterwards", "passed"}}));
    EXPECT_EQ(passed.finished, (nlohmann::json{{"event", "finished"}, {"result", "passed"}}));
    for (const char* alone : {"", "COURSE_TEST_ALONE=1 "}) {
        const Report some = run_program(alone + std::string("COURSE_TEST_LIMIT=1"),
                                        "--gtest_filter='Second.*:Third.*-*.Hangs:*.Exits'");
        EXPECT_EQ(some.results,
                  (Results{{"Second.Crashes", "failed"}, {"Third.PassesAfterwards", "passed"}}));
    }
}

TEST(TestMain, AFilterThatMatchesNothingFails) {
    const Report report = run_program("GTEST_FILTER=No.Such");
    EXPECT_EQ(report.exit_code, 1);
    EXPECT_EQ(report.finished.value("message", ""), "no test matches the filter No.Such\n");
}

TEST(TestMain, AProgramThatFailsThoughItsTestsPassSaysSo) {
    const Report report = run_program("COURSE_TROUBLE_AT_EXIT=1", "--gtest_filter=First.Passes");
    EXPECT_EQ(report.exit_code, 1);
    EXPECT_EQ(report.results, (Results{{"First.Passes", "passed"}}));
    EXPECT_EQ(report.finished.at("result"), "failed");
    EXPECT_NE(std::string(report.finished.at("message")).find("a leak"), std::string::npos)
        << report.finished;
}

// The program's output, with each event in a short form.
std::string in_short(const std::string& output) {
    std::string text;
    for (std::size_t begin = 0; begin < output.size();) {
        const bool is_event = output[begin] == '\x1e';
        const std::size_t end = output.find(is_event ? '\n' : '\x1e', begin);
        const std::string part = output.substr(begin, end - begin);
        begin = end == std::string::npos ? output.size() : end + is_event;
        if (!is_event) {
            text += part;
            continue;
        }
        const auto event = nlohmann::json::parse(part.substr(1));
        text += "<" + std::string(event.at("event")) + " " + std::string(event.at("test"));
        for (const char* key : {"result", "message"})
            text += event.contains(key) ? " " + std::string(event.at(key)) : "";
        text += ">";
    }
    return text;
}

TEST(TestMain, ReportsCanBePartOfTheOutput) {
    const course::ShellOutcome outcome = course::run_in_shell("COURSE_TEST_REPORT=- " COURSE_TROUBLED_PROGRAM
                                                              " --gtest_filter='First.*:Second.Crashes'");
    const std::string text = in_short(outcome.text);
    EXPECT_EQ(text.substr(0, text.find("Segmentation fault")),  // which the shell adds
              "<started First.Passes><ended First.Passes passed><started First.Fails>"
              "<failure First.Fails Expected equality of these values:\n  1\n  2\n\"one\" \xef\xbf\xbd>"
              "<ended First.Fails failed><started First.IsSkipped><ended First.IsSkipped skipped needs luck>"
              "<started Second.Crashes>words before the end\n");
}

}  // namespace
