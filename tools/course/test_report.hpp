// Reads what ctest writes with --output-junit: how many tests passed, failed, were skipped, and
// why.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct TestFailure {
    // As ctest knows the test: "day01_vector_add_test.DayOne/VersionTest.AllSizes/float4  # GetParam() = ...".
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

TestReport parse_test_report(std::string_view junit);

}  // namespace course::tool
