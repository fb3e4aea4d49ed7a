// Reads what ctest writes with --output-junit: how many tests passed, failed, were skipped, and why.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace course::tool {

struct TestReport {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
    std::map<std::string, int> skip_reasons;  // reason -> how many tests
};

TestReport parse_test_report(std::string_view junit);

}  // namespace course::tool
