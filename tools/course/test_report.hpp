// How many tests passed, failed, were skipped, and why: from the reports of what ctest has started
// (common/test/main.cpp, common/test/report_command.sh).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace course::tool {

struct TestFailure {
    // "day01_vector_add_test.DayOne/VersionTest.AllSizes/float4"; of a test that is no GoogleTest
    // program, as ctest knows it.
    std::string name;
    // Of its first failure: a few lines, place and what was expected; may be empty.
    std::string message;
    std::string part;  // as ctest knows it: "day01_vector_add_test.1of2"

    // What runs this test alone, in the directory of the programs: "day01_vector_add_test
    // --gtest_filter=DayOne/VersionTest.AllSizes/float4". Where ctest starts it with settings of
    // its own, a command for ctest.
    std::string command() const;
};

struct TestReport {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
    std::map<std::string, int> skip_reasons;  // reason -> how many tests
    std::vector<TestFailure> failures{};
};

// `parts` are the names that ctest has for what it should have started; x has written x.jsonl into
// the directory `reports`. What has not, or has not come to its end, failed.
TestReport parse_test_reports(const std::vector<std::string>& parts, const std::filesystem::path& reports);

}  // namespace course::tool
