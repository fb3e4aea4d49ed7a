// How many tests passed, failed, were skipped, and why: from the reports of the commands that
// ctest has started (common/test/main.cpp, common/test/report_command.sh).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace course::tool {

struct TestFailure {
    // "day01_vector_add_test.DayOne/VersionTest.AllSizes/float4"; for a test that is not a
    // GoogleTest program, its name in ctest.
    std::string name;
    // The first failure in a few lines: the place and the expected value. May be empty.
    std::string message;
    std::string part;  // the name in ctest: "day01_vector_add_test.1of2"

    // The command that runs only this test, in the directory of the programs:
    // "day01_vector_add_test --gtest_filter=DayOne/VersionTest.AllSizes/float4". If ctest starts
    // the test with special settings, a ctest command.
    std::string command() const;
};

using SkippedTests = std::map<std::string, std::vector<std::string>>;  // reason -> names

// A line for each reason: how many tests it is true of, and the first of them.
std::string lines_about(const SkippedTests& tests);

struct TestReport {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
    SkippedTests skipped_tests;
    std::vector<TestFailure> failures{};
};

// `parts` are the ctest names of everything that should have run. Part x has written x.jsonl to
// the directory `reports`. A part without a complete report counts as failed.
TestReport parse_test_reports(const std::vector<std::string>& parts, const std::filesystem::path& reports);

}  // namespace course::tool
