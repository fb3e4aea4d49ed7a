#include "test_report.hpp"

#include <gtest/gtest.h>

namespace course::tool {
namespace {

// The shape of what ctest 3.25 writes.
constexpr const char* kReport = R"xml(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="6" failures="2" disabled="1" skipped="2" time="0">
	<testcase name="a.A.B" classname="a.A.B" time="0.002" status="notrun">
		<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
		<system-out>[ RUN      ] A.B
/tmp/a.cpp:2: Skipped
needs &lt;a GPU&gt; &amp;lt;
[  SKIPPED ] A.B (0 ms)
</system-out>
	</testcase>
	<testcase name="a.A.C" classname="a.A.C" time="0.002" status="run">
		<system-out>[       OK ] A.C (0 ms), which prints status="fail"</system-out>
	</testcase>
	<testcase name="a.A.D" classname="a.A.D" time="0.002" status="fail">
		<failure message=""/>
		<system-out>: Skipped
never mind</system-out>
	</testcase>
	<testcase name="shell" classname="shell" time="0.002" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out></system-out>
	</testcase>
	<testcase name="gone" classname="gone" time="0" status="notrun">
		<skipped message="Unable to find executable"/>
		<system-out>Unable to find executable: /no/such</system-out>
	</testcase>
	<testcase name="off" classname="off" time="0" status="disabled">
		<system-out>Disabled</system-out>
	</testcase>
</testsuite>
)xml";

TEST(TestReport, CountsAndTellsWhyTestsWereSkipped) {
    const TestReport report = parse_test_report(kReport);
    EXPECT_EQ(report.passed, 1);
    EXPECT_EQ(report.failed, 2) << "a program that is not there is a failure, not a skipped test";
    EXPECT_EQ(report.skipped, 3);
    const std::map<std::string, int> reasons = {
        {"needs <a GPU> &lt;", 1}, {"no reason given", 1}, {"disabled", 1}};
    EXPECT_EQ(report.skip_reasons, reasons);
}

TEST(TestReport, TellsTheFirstFailureOfEachTestAndHowToRepeatIt) {
    const TestReport report = parse_test_report(R"xml(
	<testcase name="a_test.Day/V.All/x  # GetParam() = x" classname="a" time="0.002" status="fail">
		<system-out>[ RUN      ] Day/V.All/x
/tmp/a.cpp:2: Failure
expected &lt;1&gt;
got 2
[  FAILED  ] Day/V.All/x
</system-out>
	</testcase>
	<testcase name="a_test.descending.V.B" classname="a" time="0.002" status="fail">
		<system-out>Segmentation fault</system-out>
	</testcase>)xml");
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].message, "/tmp/a.cpp:2: Failure\nexpected <1>\ngot 2\n");
    EXPECT_EQ(report.failures[0].command(), "a_test --gtest_filter=Day/V.All/x");
    EXPECT_EQ(report.failures[1].message, "Segmentation fault");
    EXPECT_EQ(report.failures[1].command(), "CUDA_ON_CPU_ORDER=descending a_test --gtest_filter=V.B");
}

TEST(TestReport, NothingIsNothing) {
    EXPECT_EQ(parse_test_report("").passed, 0);
    EXPECT_EQ(parse_test_report("<testsuite></testsuite>").failed, 0);
}

}  // namespace
}  // namespace course::tool
