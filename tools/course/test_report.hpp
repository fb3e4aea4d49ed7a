// How many tests passed, failed, were skipped, and why: from what ctest writes with --output-junit,
// and from the reports of the test programs, which know single tests (common/test/main.cpp).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct TestFailure {
    // "day01_vector_add_test.DayOne/VersionTest.AllSizes/float4"; of a test that is no GoogleTest
    // program, as ctest knows it.
    std::string name;
    // Of its first failure: a few lines, place and what was expected; may be empty.
    std::string message;

    // What runs this test alone: "day01_vector_add_test
    // --gtest_filter=DayOne/VersionTest.AllSizes/float4".
    std::string command() const;
};

struct TestReport {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
    std::map<std::string, int> skip_reasons;  // reason -> how many tests
    std::vector<TestFailure> failures{};
};

// `reports` is a directory: what ctest calls x is a part of a test program if x.jsonl is there.
TestReport parse_test_report(std::string_view junit, const std::filesystem::path& reports);

}  // namespace course::tool
